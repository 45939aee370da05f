"""From fetched bytes to records to show: batches walked, aborted transactions and control records left out.

A fetched range may begin before the offset asked for and end in the middle of a batch; both are cut off. For readers of
committed records the broker tells which producers' transactions were aborted, and from which offset on; each one's records
are left out from there to its abort marker.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ottla.records.batch import BatchView, iterate_batches
from ottla.records.control import ControlType, parse_control_type
from ottla.records.kernels import Record
from ottla.records.reader import iterate_records
from ottla.wire.base import Bytes
from ottla.wire.messages.fetch import AbortedTransaction


class Consumed(NamedTuple):
    """The records of one batch, and what they share."""

    records: list[Record]
    timestamp_type: str
    leader_epoch: int


def whole_batches(data: Bytes) -> Iterator[BatchView]:
    """Every batch that is there whole, checksums checked."""
    for view in iterate_batches(data, allow_cut_end=True):
        view.check_crc()
        yield view


def next_offset(views: Sequence[BatchView], offset: int) -> int:
    """The offset to fetch after these batches, which were fetched from `offset`."""
    return max(offset, views[-1].base_offset + views[-1].last_offset_delta + 1) if views else offset


def read_batches(views: Sequence[BatchView], offset: int, aborted: Sequence[AbortedTransaction] | None) -> Iterator[Consumed]:
    """The records from `offset` on that a reader is to see, batch by batch."""
    waiting = sorted(aborted or (), key=lambda each: each.first_offset, reverse=True)
    left_out: set[int] = set()
    for view in views:
        last_offset = view.base_offset + view.last_offset_delta
        while waiting and waiting[-1].first_offset <= last_offset:
            left_out.add(waiting.pop().producer_id)
        if view.is_control:
            if _is_abort(view):
                left_out.discard(view.producer_id)
            continue
        if last_offset < offset or (view.is_transactional and view.producer_id in left_out):
            continue
        records = [record for record in iterate_records(view) if record.offset >= offset]
        if records:
            yield Consumed(records, "LogAppendTime" if view.is_append_time else "CreateTime", view.leader_epoch)


def _is_abort(view: BatchView) -> bool:
    record = next(iter(iterate_records(view)), None)
    return record is not None and parse_control_type(record.key) == ControlType.ABORT
