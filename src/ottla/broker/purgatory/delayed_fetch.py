"""A fetch request parked until there is enough to read, one of its partitions fails, or its time is over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from ottla.broker.requests.context import Pending
from ottla.wire.base import Message
from ottla.wire.elements import MANY_ELEMENTS

if TYPE_CHECKING:
    from ottla.broker.partitions.partition import Partition
    from ottla.broker.replication.follower_sessions import FollowerSession


class FetchAttempt(Protocol):
    """A fetch that can be tried again."""

    missing_bytes: int
    """How many bytes were missing at the last try; 0 if new records may add more to the response than their own size."""

    def answer(self, is_last: bool) -> Message | Pending | None:
        """The response; None to wait for more. Never None if `is_last`."""
        ...


class DelayedFetch(Pending):
    """A parked fetch: watches its partitions and sets one timer. `on_left` is called once, when it is no longer parked.

    A follower's fetch is tried when the log grows, a consumer's when the high watermark moves. Within a follower's session, the
    session watches the partitions.
    """

    __slots__ = ("_attempt", "_is_follower", "_missing_bytes", "_on_left", "_partitions", "_session", "_timer", "may_be_large")

    def __init__(
        self,
        attempt: FetchAttempt,
        partitions: Sequence[Partition],
        wait_ms: int,
        on_left: Callable[[], None] | None = None,
        is_follower: bool = False,
        session: FollowerSession | None = None,
    ) -> None:
        super().__init__()
        self._session = session
        if session is not None:
            session.parked = self
        self._is_follower = is_follower
        self._on_left = on_left
        self._attempt = attempt
        self._missing_bytes = attempt.missing_bytes
        self._partitions = partitions
        self.may_be_large = len(partitions) > MANY_ELEMENTS
        for partition in partitions:
            (partition.follower_watches if is_follower else partition.watches)[self] = None
        self._timer = asyncio.get_running_loop().call_later(wait_ms / 1000, self.answer_now)

    def look(self) -> DelayedFetch | None:
        """A partition that a follower's fetch watches has changed."""
        return self

    def recheck(self) -> None:
        """Every try looks at all partitions."""

    def leave_to(self, replica_id: int) -> None:
        """It watches partitions until it is answered."""

    def may_be_answered_by(self, size_bytes: int) -> bool:
        """Count `size_bytes` more in one of the partitions; whether the missing bytes may be there now."""
        self._missing_bytes -= size_bytes
        return self._missing_bytes <= 0

    def try_answer(self, is_last: bool = False) -> None:
        """Try the fetch again; complete this if there is an answer or a failure."""
        if self._is_done or self._timer.cancelled():  # answered, or its records are being read from the disk
            return
        if self._session is not None:
            self.may_be_large = len(self._session.dirty) > MANY_ELEMENTS
        try:
            answer = self._attempt.answer(is_last)
        except (
            Exception
        ) as failure:  # answered as if the handler had raised it; the fetches behind this one must still be tried
            self._leave()
            self.fail(failure)
            return
        if answer is None:
            self._missing_bytes = self._attempt.missing_bytes
            return
        self._leave()
        if isinstance(answer, Pending):
            answer.deliver_to(self._finish)
        else:
            self.complete(answer)

    def answer_now(self) -> None:
        self.try_answer(is_last=True)

    def give_up(self) -> None:
        self.answer_now()

    def _leave(self) -> None:
        self._timer.cancel()
        if self._session is not None and self._session.parked is self:
            self._session.parked = None
        for partition in self._partitions:
            (partition.follower_watches if self._is_follower else partition.watches).pop(self, None)
        on_left, self._on_left = self._on_left, None
        if on_left is not None:
            on_left()

    def abandon(self) -> None:
        self._leave()
        super().abandon()
