"""The quota on changes of the metadata: a bucket of tokens per client, from which each partition is paid. Pure.

A request is admitted while the bucket is not negative, and may drive it below: so a topic of many partitions can be created at
all. Old versions of the protocol cannot be refused for it: they are admitted always, and their client is muted.
"""

from __future__ import annotations

from typing import Final

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode

STRICT_SINCE: Final = {19: 6, 20: 5, 37: 3}
"""API (CreateTopics, DeleteTopics, CreatePartitions) → the version from which a request above the quota is refused."""


class TokenBucket:
    """The tokens of one client; it is full when it is first used."""

    __slots__ = ("_filled_s", "tokens")

    def __init__(self) -> None:
        self.tokens = float("inf")
        self._filled_s = 0.0

    def fill(self, rate: float, size: float, now_s: float) -> None:
        """Add the tokens of the time since the last call."""
        self.tokens = min(size, self.tokens + max(0.0, now_s - self._filled_s) * rate)
        self._filled_s = now_s


class Mutations:
    """Pays for the changes of one request. `throttle_ms` is for how long its client is to be muted."""

    __slots__ = ("_bucket", "_is_strict", "_paid", "_rate", "throttle_ms")

    def __init__(self, bucket: TokenBucket, rate: float, size: float, is_strict: bool, now_s: float) -> None:
        bucket.fill(rate, size, now_s)
        self._bucket = bucket
        self._rate = rate
        self._is_strict = is_strict
        self._paid = 0
        self.throttle_ms = 0

    def pay(self, partitions: int) -> None:
        """Pay for partitions that are created, added or deleted. Raises THROTTLING_QUOTA_EXCEEDED if that is not allowed."""
        bucket = self._bucket
        if self._is_strict and bucket.tokens < 0:
            self._note()
            raise KafkaError(
                ErrorCode.THROTTLING_QUOTA_EXCEEDED,
                f"the client is above its controller_mutation_rate: ask again in {self.throttle_ms} ms",
            )
        bucket.tokens -= partitions
        self._paid += partitions
        if not self._is_strict and bucket.tokens < 0:
            self._note()

    def begin(self) -> None:
        """Take back what was paid: the request is decided again."""
        self._bucket.tokens += self._paid
        self._paid = self.throttle_ms = 0

    def _note(self) -> None:
        self.throttle_ms = max(self.throttle_ms, round(-self._bucket.tokens / self._rate * 1000))
