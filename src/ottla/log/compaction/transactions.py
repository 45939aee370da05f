"""Transactions in a compaction pass: which batches are aborted data, and when an end marker may be dropped.

A marker stays while any batch of its transaction remains: without it, read_committed consumers could not tell whether that
batch was committed. A pass that meets no such batch gives the marker a delete horizon; after that time a pass drops it.

Called for every batch, in the order of the log, over all segments of a pass.
"""

from collections.abc import Iterable

from ottla.log.segments.txn_index import AbortedTxn
from ottla.records.batch import BatchView
from ottla.records.control import ControlType, parse_control_type
from ottla.records.reader import read_records


class PassedTransactions:
    """The transactions open at the offset that a pass has reached."""

    def __init__(self, aborted: Iterable[AbortedTxn]) -> None:
        self._waiting = sorted(aborted, key=lambda txn: txn.first_offset, reverse=True)
        self._aborted: dict[int, AbortedTxn] = {}
        self._aborted_seen: set[int] = set()
        self._committed_seen: set[int] = set()

    def pass_data(self, batch: BatchView) -> bool:
        """Take note of a data batch; True if it belongs to an aborted transaction and is dropped."""
        self._begin_up_to(batch.last_offset)
        if not batch.is_transactional:
            return False
        if batch.producer_id in self._aborted:
            self._aborted_seen.add(batch.producer_id)
            return True
        self._committed_seen.add(batch.producer_id)
        return False

    def pass_control(self, batch: BatchView) -> tuple[bool, AbortedTxn | None]:
        """Take note of a control batch. Returns whether no data needs it any more, and, for the transaction index of the new
        segment, the aborted transaction that it ends if data of it was met."""
        self._begin_up_to(batch.last_offset)
        if not batch.count:
            return True, None  # emptied by an earlier pass
        control_type = parse_control_type(read_records(batch)[0].key)
        producer_id = batch.producer_id
        if control_type == ControlType.ABORT:
            txn = self._aborted.pop(producer_id, None)
            if txn is not None and producer_id in self._aborted_seen:
                self._aborted_seen.discard(producer_id)
                return False, txn
            return True, None
        if control_type == ControlType.COMMIT:
            if producer_id in self._committed_seen:
                self._committed_seen.discard(producer_id)
                return False, None
            return True, None
        return False, None

    def _begin_up_to(self, offset: int) -> None:
        while self._waiting and self._waiting[-1].first_offset <= offset:
            txn = self._waiting.pop()
            self._aborted.setdefault(txn.producer_id, txn)
