"""IdLimit: how many ids of one kind, groups or transactional ids, a node remembers.

An id costs memory until it expires, days later, and any client can invent ids. Beyond the limit a new id is refused, with an
error that clients do not retry: nothing is freed soon. Ids that are known are not affected. None is dropped to make room: with
a group its committed offsets would go, and the next transaction of a live producer would fail (docs/decisions/0010).
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode


def _nobody(_text: str) -> None:
    pass


class IdLimit:
    """The limit for one kind of id, shared by the shards of a node.

    `count` returns how many there are now, `refused` gets the text of every refusal. Without a runtime there is no limit.
    """

    __slots__ = ("_code", "_count", "_limit", "_refused", "_setting")

    def __init__(
        self,
        setting: str = "",
        limit: int = 2**31 - 1,
        count: Callable[[], int] = lambda: 0,
        code: ErrorCode = ErrorCode.POLICY_VIOLATION,
        refused: Callable[[str], None] = _nobody,
    ) -> None:
        self._setting = setting
        self._limit = limit
        self._count = count
        self._code = code
        self._refused = refused

    def check_room(self, what: str) -> None:
        """Raises `KafkaError` if no new id may be added; `what` names it."""
        count = self._count()
        if count >= self._limit:
            text = (
                f"{what} is refused: this node has {count:,} already, and {self._setting} is {self._limit:,}. "
                "Raise that setting, or delete what is not used"
            )
            self._refused(text)
            raise KafkaError(self._code, text)
