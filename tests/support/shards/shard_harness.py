"""What harnesses of group shards share: the time, and responses that are given once."""

from __future__ import annotations

from typing import Any

from ottla.coordinator.contract import Effects, Instant, Reply
from ottla.coordinator.groups.shard import GroupShard
from ottla.errors import KafkaError

WALL_AHEAD_MS = 1_700_000_000_000


class Asked(Reply):
    """A request and its response."""

    __slots__ = ("answer", "is_answered", "what")

    def __init__(self, what: str) -> None:
        self.what = what
        self.is_answered = False
        self.answer: Any = None

    @property
    def code(self) -> int:
        """The error code of the response, which must be there."""
        assert self.is_answered, f"{self.what} is not answered yet"
        code: int = self.answer.code if isinstance(self.answer, KafkaError) else self.answer.error_code
        return code

    def __repr__(self) -> str:
        return f"<{self.what}: {self.answer if self.is_answered else 'waits'}>"


class ShardHarness:
    """A shard whose time the test moves. A harness says how records are replayed: `submit`."""

    shard: GroupShard
    now_ms = 0

    @property
    def now(self) -> Instant:
        return Instant(WALL_AHEAD_MS + self.now_ms, self.now_ms)

    def submit(self, effects: Effects) -> None:
        """Replay the records of a decision, and give its responses."""
        raise NotImplementedError

    def answer(self, effects: Effects) -> None:
        """Give the responses of a decision."""
        for reply, response in effects.answers:
            assert isinstance(reply, Asked)
            assert not reply.is_answered, f"{reply} is answered again, with {response}"
            reply.is_answered, reply.answer = True, response

    def advance(self, time_ms: int) -> None:
        """Advance the time; timers on the way run at their deadlines."""
        until_ms = self.now_ms + time_ms
        while (deadline_ms := self.shard.next_deadline_ms) is not None and deadline_ms <= until_ms:
            self.now_ms = max(self.now_ms, deadline_ms)
            self.submit(self.shard.expire(self.now))
        self.now_ms = until_ms
