"""Reading a partition log the way a consumer does: fetch after fetch, control records dropped, aborted data passed over."""

from collections.abc import Iterator

from ottla.log.partition_log import PartitionLog
from ottla.log.read import Isolation
from ottla.log.segments.txn_index import AbortedTxn
from ottla.records.batch import BatchView
from ottla.records.layout import HEADER_SIZE
from ottla.records.reader import read_records
from ottla.records.record import Record


def consume(log: PartitionLog, isolation: Isolation, max_bytes: int = 1500) -> Iterator[tuple[BatchView, Record]]:
    """Every record a consumer would be given, with its batch, in fetches of about `max_bytes`."""
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
        assert next_offset > offset, f"a read at offset {offset} of {log.partition} does not lead on"
        offset = next_offset


def whole_batches(data: bytes) -> Iterator[BatchView]:
    """The batches of a fetch, without the last one if it is cut."""
    position = 0
    while len(data) - position >= HEADER_SIZE:
        batch = BatchView(data, position)
        if batch.size > len(data) - position:
            return
        yield batch
        position += batch.size


class AbortedProducers:
    """Which batches of a fetch belong to aborted transactions, by the list that came with it."""

    def __init__(self, aborted: list[AbortedTxn]) -> None:
        self._waiting = sorted(aborted, key=lambda txn: txn.first_offset)
        self._aborting: set[int] = set()

    def skips(self, batch: BatchView) -> bool:
        """Whether a consumer of committed records passes over the batch; to be asked batch after batch."""
        while self._waiting and self._waiting[0].first_offset <= batch.last_offset:
            self._aborting.add(self._waiting.pop(0).producer_id)
        if batch.is_control:
            self._aborting.discard(batch.producer_id)
            return True
        return batch.is_transactional and batch.producer_id in self._aborting
