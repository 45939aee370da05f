"""Reads a partition log as a consumer does: fetch after fetch, without control records and aborted data."""

from collections.abc import Iterator

from ottla.log.partition_log import PartitionLog
from ottla.log.read import Isolation
from ottla.log.segments.txn_index import AbortedTxn
from ottla.records.batch import BatchView
from ottla.records.layout import HEADER_SIZE
from ottla.records.reader import read_records
from ottla.records.record import Record


def consume(log: PartitionLog, isolation: Isolation, max_bytes: int = 1500) -> Iterator[tuple[BatchView, Record]]:
    """Every record a consumer gets, with its batch, in fetches of about `max_bytes`."""
    offset = log.log_start_offset
    while True:
        found = log.read(offset, max_bytes, isolation)
        if found.records is None:
            return
        passed_over = AbortedProducers(found.aborted or [])
        next_offset = offset
        for batch in whole_batches(found.records.read()):
            batch.check()
            next_offset = batch.next_offset
            if passed_over.skips(batch):
                continue
            yield from ((batch, record) for record in read_records(batch) if record.offset >= offset)
        assert next_offset > offset, f"a read at offset {offset} of {log.partition} makes no progress"
        offset = next_offset


def whole_batches(data: bytes) -> Iterator[BatchView]:
    """The whole batches of a fetch: a cut last one is left out."""
    position = 0
    while len(data) - position >= HEADER_SIZE:
        batch = BatchView(data, position)
        if batch.size > len(data) - position:
            return
        yield batch
        position += batch.size


class AbortedProducers:
    """Says which batches of a fetch belong to aborted transactions, by the list in its response."""

    def __init__(self, aborted: list[AbortedTxn]) -> None:
        self._waiting = sorted(aborted, key=lambda txn: txn.first_offset)
        self._aborting: set[int] = set()

    def skips(self, batch: BatchView) -> bool:
        """Whether a read_committed consumer skips the batch. Call it for every batch, in order."""
        while self._waiting and self._waiting[0].first_offset <= batch.last_offset:
            self._aborting.add(self._waiting.pop(0).producer_id)
        if batch.is_control:
            self._aborting.discard(batch.producer_id)
            return True
        return batch.is_transactional and batch.producer_id in self._aborting
