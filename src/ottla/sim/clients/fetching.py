"""Builds Fetch and ListOffsets requests and reads their answers, for consumers, apps and the auditor."""

from __future__ import annotations

from typing import Any, NamedTuple

from ottla.ids import Uuid
from ottla.records.batch import iterate_batches, sequence_after
from ottla.records.control import ControlType, parse_control_type
from ottla.records.reader import read_records
from ottla.sim.checkers.checker import Place, SeenRecord
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

TOPIC_IDS_FROM = 13
PARTITION_BYTES_MAX = 4_000
EARLIEST = -2
LATEST = -1


def fetch_request(
    wanted: dict[Place, int],
    version: int,
    *,
    session: tuple[int, int] = (0, -1),
    max_wait_ms: int = 0,
    isolation_level: int = 0,
    partition_bytes_max: int = PARTITION_BYTES_MAX,
) -> FetchRequest:
    """A request for each partition from an offset on. `session` is (id, epoch); (0, -1) is none."""
    topics: dict[Uuid, FetchTopic] = {}
    for place, offset in wanted.items():
        topic = topics.setdefault(place.topic.topic_id, FetchTopic())
        if version >= TOPIC_IDS_FROM:
            topic.topic_id = place.topic.topic_id
        else:
            topic.topic = place.topic.name
        topic.partitions.append(
            FetchPartition(partition=place.number, fetch_offset=offset, partition_max_bytes=partition_bytes_max)
        )
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=1 << 20,
        isolation_level=isolation_level,
        session_id=session[0],
        session_epoch=session[1],
        topics=list(topics.values()),
    )


def offset_request(place: Place, which: int, isolation_level: int = 0) -> ListOffsetsRequest:
    """A request for a partition's first (`EARLIEST`) or next (`LATEST`) offset."""
    partition = ListOffsetsPartition(partition_index=place.number, timestamp=which)
    topic = ListOffsetsTopic(name=place.topic.name, partitions=[partition])
    return ListOffsetsRequest(replica_id=-1, isolation_level=isolation_level, topics=[topic])


def answers_by_place(answer: Any, places: list[Place], version: int) -> dict[Place, Any]:
    """The answer of each partition. In a fetch session, only partitions with news have one."""
    by_key: dict[tuple[str, Uuid, int], Place] = {}
    for place in places:
        name, topic_id = place.topic.name, place.topic.topic_id
        key = ("", topic_id, place.number) if version >= TOPIC_IDS_FROM else (name, Uuid(bytes(16)), place.number)
        by_key[key] = place
    return {
        by_key[topic.topic, topic.topic_id, part.partition_index]: part
        for topic in answer.responses
        for part in topic.partitions
        if (topic.topic, topic.topic_id, part.partition_index) in by_key
    }


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
        for index, record in enumerate(read_records(view)):
            if record.offset >= offset:
                sequence = sequence_after(view.base_sequence, index) if view.has_producer_id else -1
                records.append(SeenRecord(record.offset, record.value or b"", view.producer_id, sequence, record.key))
    return Read(records, next_offset, tuple(markers))
