"""Decodes fetched batches into records to show, without control records and aborted transactions.

A fetched range may begin before the requested offset and end in the middle of a batch; both are cut off. With read_committed
the response lists aborted transactions as (producer id, first offset): records of that producer are left out from there to its
abort marker.
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
    """Every complete batch, with its checksum checked."""
    for view in iterate_batches(data, allow_cut_end=True):
        view.check_crc()
        yield view


def next_offset(views: Sequence[BatchView], offset: int) -> int:
    """The offset to fetch next, after these batches were fetched from `offset`."""
    return max(offset, views[-1].base_offset + views[-1].last_offset_delta + 1) if views else offset


def read_batches(views: Sequence[BatchView], offset: int, aborted: Sequence[AbortedTransaction] | None) -> Iterator[Consumed]:
    """The visible records from `offset` on, batch by batch. `aborted` is None with read_uncommitted."""
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
