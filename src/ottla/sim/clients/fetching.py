"""Builds Fetch and ListOffsets requests and reads their answers, for the auditor."""

from __future__ import annotations

from typing import Any, NamedTuple

from ottla.records.batch import iterate_batches
from ottla.records.control import ControlType, parse_control_type
from ottla.records.reader import read_records
from ottla.sim.checkers.checker import Place, SeenRecord
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

FETCH_VERSION = 17
PARTITION_BYTES_MAX = 1 << 20
EARLIEST = -2
LATEST = -1


def fetch_request(place: Place, offset: int, isolation_level: int = 0) -> FetchRequest:
    """A request for a partition from an offset on, without a fetch session."""
    partition = FetchPartition(partition=place.number, fetch_offset=offset, partition_max_bytes=PARTITION_BYTES_MAX)
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=PARTITION_BYTES_MAX,
        isolation_level=isolation_level,
        session_id=0,
        session_epoch=-1,
        topics=[FetchTopic(topic_id=place.topic.topic_id, partitions=[partition])],
    )


def offset_request(place: Place, which: int, isolation_level: int = 0) -> ListOffsetsRequest:
    """A request for a partition's first (`EARLIEST`) or next (`LATEST`) offset."""
    partition = ListOffsetsPartition(partition_index=place.number, timestamp=which)
    topic = ListOffsetsTopic(name=place.topic.name, partitions=[partition])
    return ListOffsetsRequest(replica_id=-1, isolation_level=isolation_level, topics=[topic])


class Read(NamedTuple):
    """The records of an answer, for a consumer at some offset."""

    records: list[SeenRecord]
    next_offset: int
    markers: tuple[int, ...]
    """The offsets of control records."""


def records_from(data: Any, offset: int, aborted: Any = ()) -> Read:
    """The records from `offset` on, without those of `aborted` transactions, and the next offset, as a consumer reads them.

    The first batch may begin earlier, the last may be cut, and a compacted one may hold no record at all.
    """
    records: list[SeenRecord] = []
    markers: list[int] = []
    next_offset = offset
    coming = sorted((each.first_offset, each.producer_id) for each in aborted or ())
    passed_over: dict[int, None] = {}
    whole = bytes(data) if data is not None else b""
    for view in iterate_batches(whole, allow_cut_end=True):
        view.check_crc()
        next_offset = max(next_offset, view.next_offset)
        while coming and coming[0][0] <= view.last_offset:
            passed_over[coming.pop(0)[1]] = None
        if view.is_control:
            for record in read_records(view):
                markers.append(record.offset)
                if parse_control_type(record.key) == ControlType.ABORT:
                    passed_over.pop(view.producer_id, None)
            continue
        if view.is_transactional and view.producer_id in passed_over:
            continue
        found = [record for record in read_records(view) if record.offset >= offset]
        records += [SeenRecord(record.offset, record.value or b"", record.key) for record in found]
    return Read(records, next_offset, tuple(markers))
