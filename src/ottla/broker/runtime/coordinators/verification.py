"""Asks a transaction's coordinator to verify partitions, for a batch that waits to be appended.

While the producer's previous transaction is still being ended (CONCURRENT_TRANSACTIONS), it asks again for a short time: that
is cheaper than letting the client send the batch again. It also asks again if a marker has ended the verification in a
partition: the previous transaction's marker can come after the question was sent, and its completion before it arrives.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition

if TYPE_CHECKING:
    from ottla.broker.runtime.coordinators.hosted_shard import PendingReply


ASKED_AGAIN_MAX = 3
"""How often the coordinator is asked again because of markers. Each transaction has one marker, so one time is the rule."""


class Begun(NamedTuple):
    """The verifications that have begun in the logs of partitions."""

    again: Callable[[], None]
    """Begins them again: the next answer counts for the new ones."""
    is_dropped: Callable[[], bool]
    """Whether a marker has ended one of them: then no answer to a question from before counts."""


class Verification:
    """One verification. `ask` sends the request (True: the first one); `deliver` gets the code of every partition."""

    __slots__ = ("_ask", "_asked_again", "_backoff_ms", "_deliver", "_is_dropped", "_partitions", "_waitable_ms")

    def __init__(
        self,
        ask: Callable[[bool], PendingReply],
        partitions: Sequence[TopicPartition],
        deliver: Callable[[dict[TopicPartition, int]], None],
        is_dropped: Callable[[], bool],
        backoff_ms: int,
        waitable_ms: int,
    ) -> None:
        self._ask = ask
        self._partitions = partitions
        self._deliver = deliver
        self._is_dropped = is_dropped
        self._asked_again = 0
        self._backoff_ms = backoff_ms
        self._waitable_ms = waitable_ms
        """How much longer it may ask again."""

    def begin(self, is_first: bool = True) -> None:
        try:
            reply = self._ask(is_first)
        except KafkaError as refused:
            self._refused(refused)
            return
        reply.deliver_to(self._answered)

    def _answered(self, codes: Any, failure: BaseException | None) -> None:
        if failure is None:
            if self._asked_again < ASKED_AGAIN_MAX and self._is_dropped():
                self._asked_again += 1
                self.begin(False)
            else:
                self._deliver(codes)
        elif isinstance(failure, KafkaError):
            self._refused(failure)
        else:
            raise failure

    def _refused(self, refused: KafkaError) -> None:
        code = refused.code
        if code == ErrorCode.CONCURRENT_TRANSACTIONS and self._waitable_ms > 0:
            self._waitable_ms -= self._backoff_ms
            asyncio.get_running_loop().call_later(self._backoff_ms / 1000, self.begin, False)
            return
        if code == ErrorCode.PRODUCER_FENCED:
            code = ErrorCode.INVALID_PRODUCER_EPOCH  # which producers know from appends
        self._deliver(dict.fromkeys(self._partitions, code))
