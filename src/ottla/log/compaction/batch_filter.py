"""Which records of a batch compaction keeps, decided batch by batch.

A record is kept if the map has no later record with its key. A tombstone (no value) is kept until the batch's delete horizon:
now + delete.retention.ms, set by the first pass that meets it. Records without a key and all data of aborted transactions are
dropped. Records past the end of the map are kept, and so is a batch that cannot be read.

A batch keeps its base offset, last offset, leader epoch, producer and sequence, however few records it has left. A batch with
no records left is dropped, with two exceptions that stay as a bare header: the last batch of an active producer, because it
holds the producer's sequence, and the last batch of the cleaned part of the log, because it marks where that part ends.

A batch with a delete horizon has attribute bit 6 set, and its base timestamp is the horizon; the records' timestamp deltas are
rewritten to match.
"""

from collections.abc import Mapping

from ottla.log.compaction.offset_map import OffsetMap
from ottla.log.compaction.plan import CompactionStats, LastRecord
from ottla.log.compaction.transactions import PassedTransactions
from ottla.log.compaction.unpacking import unpacked
from ottla.log.segments.txn_index import TxnIndex
from ottla.records.batch import BatchView
from ottla.records.builder import build_batch
from ottla.records.layout import HEADER, HEADER_SIZE, LOG_OVERHEAD, MAGIC
from ottla.records.patch import set_crc
from ottla.records.reader import read_records
from ottla.records.record import Record

ATTRIBUTES_OF_EMPTY = 0x38
"""Of a batch left without records, these attributes stay: timestamp type, transactional, control."""
NO_TIMESTAMP = -1


class BatchFilter:
    """The filter of one pass. The caller sets `txn_index` to the index of the segment being written."""

    def __init__(
        self,
        offsets: OffsetMap,
        transactions: PassedTransactions,
        producers: Mapping[int, LastRecord],
        *,
        end_of_round: int,
        now_ms: int,
        delete_retention_ms: int,
        stats: CompactionStats,
        unpacked_bytes_max: int,
    ) -> None:
        self._offsets = offsets
        self._transactions = transactions
        self._producers = producers
        self._end_of_round = end_of_round
        self._now_ms = now_ms
        self._delete_retention_ms = delete_retention_ms
        self._stats = stats
        self._unpacked_bytes_max = unpacked_bytes_max
        self.txn_index: TxnIndex | None = None

    def filtered(self, batch: BatchView) -> memoryview | bytearray | None:
        """The bytes to write in place of `batch`: its own, a smaller batch, or None if it is dropped."""
        self._stats.records_read += batch.count
        if batch.is_control:
            return self._control(batch)
        if self._transactions.pass_data(batch):
            return self._emptied(batch)
        records = unpacked(batch, self._unpacked_bytes_max)
        if isinstance(records, str):
            self._stats.records_written += batch.count
            return batch.data
        kept = self._kept(batch, records)
        if not kept:
            return self._emptied(batch)
        has_tombstone = any(record.value is None for record in kept)
        return self._written(batch, kept, whole=len(kept) == len(records), needs_horizon=has_tombstone)

    def _control(self, batch: BatchView) -> memoryview | bytearray | None:
        is_unneeded, ended = self._transactions.pass_control(batch)
        if ended is not None and self.txn_index is not None:
            self.txn_index.append(ended)
        horizon_ms = batch.delete_horizon_ms
        if not batch.count or (is_unneeded and horizon_ms is not None and horizon_ms <= self._now_ms):
            return self._emptied(batch)
        return self._written(batch, read_records(batch), whole=True, needs_horizon=is_unneeded)

    def _kept(self, batch: BatchView, records: list[Record]) -> list[Record]:
        """The records of a data batch that are kept."""
        latest_offset = self._offsets.latest_offset
        get = self._offsets.get
        horizon_ms = batch.delete_horizon_ms
        keeps_tombstones = horizon_ms is None or self._now_ms < horizon_ms
        kept = []
        for record in records:
            if record.offset > latest_offset:
                kept.append(record)
            elif record.key is None:
                self._stats.records_without_key += 1
            elif (keeps_tombstones or record.value is not None) and record.offset >= get(record.key):
                kept.append(record)
        return kept

    def _written(self, batch: BatchView, records: list[Record], *, whole: bool, needs_horizon: bool) -> memoryview | bytearray:
        self._stats.records_written += len(records)
        horizon_ms = batch.delete_horizon_ms
        sets_horizon = needs_horizon and horizon_ms is None
        if whole and not sets_horizon:
            return batch.data
        return build_batch(
            records,
            base_offset=batch.base_offset,
            last_offset_delta=batch.last_offset_delta,
            leader_epoch=batch.leader_epoch,
            codec=batch.codec,
            append_time_ms=batch.max_timestamp if batch.is_append_time else None,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
            transactional=batch.is_transactional,
            control=batch.is_control,
            delete_horizon_ms=self._now_ms + self._delete_retention_ms if sets_horizon else horizon_ms,
        )

    def _emptied(self, batch: BatchView) -> bytearray | None:
        """The header of a batch without records if it must stay, else None."""
        if not self._is_last_of_producer(batch) and batch.next_offset != self._end_of_round:
            return None
        self._stats.batches_emptied += 1
        return empty_batch(batch)

    def _is_last_of_producer(self, batch: BatchView) -> bool:
        """Whether this is the last batch of an active producer, which holds its sequence or epoch."""
        last = self._producers.get(batch.producer_id) if batch.has_producer_id else None
        if last is None:
            return False
        if last.last_data_offset >= 0:
            return batch.last_offset == last.last_data_offset
        return batch.is_control and batch.producer_epoch == last.epoch


def empty_batch(batch: BatchView) -> bytearray:
    """`batch` without its records: uncompressed, without base timestamp and delete horizon, which described the records."""
    empty = bytearray(HEADER_SIZE)
    HEADER.pack_into(
        empty,
        0,
        batch.base_offset,
        HEADER_SIZE - LOG_OVERHEAD,
        batch.leader_epoch,
        MAGIC,
        0,
        batch.attributes & ATTRIBUTES_OF_EMPTY,
        batch.last_offset_delta,
        NO_TIMESTAMP,
        batch.max_timestamp,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        0,
    )
    set_crc(empty, 0, HEADER_SIZE)
    return empty
