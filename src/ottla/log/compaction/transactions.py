"""Transactions as a compaction pass meets them: which batches are aborted data, and when an end marker may go.

A marker stays while any batch of its transaction is there: without it, readers of committed records could not tell what became
of that batch. Only once a pass has met none does the marker get a delete horizon, and goes when that has passed.

Stepped batch by batch, in the order of the log, over all segments of a pass.
"""

from collections.abc import Iterable

from ottla.log.segments.txn_index import AbortedTxn
from ottla.records.batch import BatchView
from ottla.records.control import ControlType, parse_control_type
from ottla.records.reader import read_records


class PassedTransactions:
    """The transactions under way at the point a pass has reached."""

    def __init__(self, aborted: Iterable[AbortedTxn]) -> None:
        self._waiting = sorted(aborted, key=lambda txn: txn.first_offset, reverse=True)
        self._aborted: dict[int, AbortedTxn] = {}
        self._aborted_seen: set[int] = set()
        self._committed_seen: set[int] = set()

    def pass_data(self, batch: BatchView) -> bool:
        """Step over a batch of data; True if it belongs to an aborted transaction, so that none of it is needed."""
        self._begin_up_to(batch.last_offset)
        if not batch.is_transactional:
            return False
        if batch.producer_id in self._aborted:
            self._aborted_seen.add(batch.producer_id)
            return True
        self._committed_seen.add(batch.producer_id)
        return False

    def pass_control(self, batch: BatchView) -> tuple[bool, AbortedTxn | None]:
        """Step over a control batch. Returns whether no data needs it any more, and the aborted transaction that it ends and
        whose data was met, for the index of the new segment."""
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
