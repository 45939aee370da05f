# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, annotation_typing=False
# cython: overflowcheck=False, cdivision=True
"""The numbers of a partition that every produced batch reads and moves: the base class of `Partition`, pure and compiled.

The rules for both variants are those of `records/kernel.py`; this builds on `log/fast_path/kernel_append.py`.
One event loop, plain calls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.records.decline import Decline

if TYPE_CHECKING:
    from ottla.env import Buffer
    from ottla.errors import KafkaError, OttlaError
    from ottla.log.fast_path.kernel_append import FastAppend, LogTail


_DECLINE_PARTITION = int(Decline.PARTITION)


class PartitionTail:
    """A partition, as far as the fast path of an append and the high watermark are concerned."""

    __slots__ = (
        "_others_in_sync",
        "_owner",
        "ack_waits",
        "asked_by",
        "flushing",
        "follower_ends",
        "follower_watches",
        "is_internal",
        "is_leading",
        "isr",
        "leader_epoch",
        "log",
        "min_isr",
        "unread_bytes",
        "watches",
    )

    _others_in_sync: tuple[int, ...]
    """The other replicas that the high watermark waits for."""
    _owner: Any
    ack_waits: dict[Any, None]
    asked_by: int
    """The number of the last produce request with a batch for the partition: the same again means that it has two."""
    flushing: Any
    follower_ends: dict[int, int]
    follower_watches: dict[Any, None]
    is_internal: bool
    is_leading: bool
    isr: tuple[int, ...]
    leader_epoch: int
    log: LogTail
    min_isr: int
    unread_bytes: int
    watches: dict[Any, None]

    def check_fast(self, data: Buffer, start: int, records: memoryview, now_ms: int, request_version: int) -> FastAppend:
        """Check whether the batch `records`, which lies in `data` from `start` on, can be appended at once.

        With other replicas in sync, its acknowledgement waits for the high watermark. Nothing is changed here. What is
        declined, `Partition.append` takes or refuses.
        """
        if not self.is_leading or self.is_internal or self.flushing is not None or len(self.isr) < self.min_isr:
            return self.log.declined(_DECLINE_PARTITION)
        return self.log.check_fast(data, start, records, self.leader_epoch, now_ms, True, request_version)

    def write(self, append: FastAppend) -> int:
        """Append what `check_fast` has passed, with nothing done since; returns its first offset. `OttlaError`: disk failed."""
        batch: Any = append.batch
        first_offset = self.log.write(append)
        self.has_grown(batch.size_bytes)
        return first_offset

    def append_marker(
        self,
        marker: bytearray,
        producer_id: int,
        epoch: int,
        coordinator_epoch: int,
        transaction_version: int,
        now_ms: int,
    ) -> int:
        """As `LogTail.append_marker`; -1 also where the partition's state does not allow it."""
        if not self.is_leading or len(self.isr) < self.min_isr:
            return -1
        offset = self.log.append_marker(
            marker, producer_id, epoch, coordinator_epoch, transaction_version, self.leader_epoch, now_ms
        )
        if offset >= 0:
            self.has_grown(len(marker))
        return offset

    def has_grown(self, size_bytes: int) -> None:
        """So many bytes have been appended."""
        self.unread_bytes += size_bytes
        self.advance(True)
        if self.follower_watches:
            self._owner.has_more_for_followers(self)
        if self.log.flush_wanted_up_to is not None:
            self._owner.upkeep_is_due()

    def advance(self, is_append: bool = False) -> None:
        """Raise the high watermark as far as the replicas in sync have the log, and wake the requests that wait for it.

        After an append they are answered later: a connection that gets an answer handles its next request at once, and that
        would append in the middle of a request that has checked all its batches and not yet written all of them.
        """
        log = self.log
        log_end_offset = log.log_end_offset
        end = log_end_offset
        if self.flushing is not None and log.recovery_point < end:
            end = log.recovery_point
        if self._others_in_sync:
            end = self._replicated_end(end)
        if end > log.high_watermark and self.is_leading and len(self.isr) >= self.min_isr:
            log.increment_high_watermark(end)
            for watch in self.follower_watches:  # to be sent with what comes next: nobody is woken
                watch.look()
            if self.ack_waits:
                if is_append:
                    self.settle_soon()
                else:
                    self.settle_acks()
            if self.watches:
                self._owner.has_news(self)
            elif end == log_end_offset:
                self.unread_bytes = 0

    def _replicated_end(self, end: int) -> int:
        for replica in self._others_in_sync:
            end = min(end, self.follower_ends.get(replica, 0))
        return end

    # What `Partition` has

    def settle_acks(self) -> None:
        raise NotImplementedError

    def settle_soon(self) -> None:
        raise NotImplementedError

    def refusal(self) -> KafkaError:
        raise NotImplementedError

    def refused_by(self, failure: OttlaError) -> KafkaError:
        raise NotImplementedError
