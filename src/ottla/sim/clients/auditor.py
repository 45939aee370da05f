"""Reads everything after a start and at the end: every partition completely, all topics and settings, the quorum."""

from __future__ import annotations

from typing import Any, NamedTuple

from ottla.errors.codes import ErrorCode, error_name
from ottla.records.batch import iterate_batches
from ottla.records.control import ControlType, parse_control_type
from ottla.records.reader import read_records
from ottla.sim.checkers.checker import Audit, Place, SeenRecord, TopicPlan, Violation
from ottla.sim.clients.client import BACKOFF_S_MAX, Client, Stage, value_text
from ottla.sim.histories.history import Seen
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

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


TOPIC_RESOURCE = 2
DYNAMIC_TOPIC_CONFIG = 1
REFUSALS_MAX = 50


class Auditor(Client):
    """Reads on its own connection, also while the gate is closed."""

    passes_gate = True

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage, "auditor")

    async def audit(self, topics: list[TopicPlan]) -> None:
        """Report all records of `topics` to the checkers. No topic may be deleted at the same time."""
        for topic in topics:
            for index in range(topic.partitions):
                audit = await self._read(Place(topic, index))
                self._record(audit.place, audit.records, is_committed=False)
                self.stage.checkers.audited(audit)
        await self.ask_quorum()

    def _record(self, place: Place, records: list[SeenRecord], *, is_committed: bool) -> None:
        """Add a whole partition to the history, as a consumer that has read it from its start."""
        reader = f"{self.name}, committed" if is_committed else self.name
        self.stage.history.assigned(reader, [place.name])
        seen = [Seen(place.name, each.offset, value_text(each.value)) for each in records]
        self.stage.history.polled(reader, seen, is_committed=is_committed)

    async def _read(self, place: Place) -> Audit:
        records: list[SeenRecord] = []
        markers: list[int] = []
        await self._find_leader(place)
        start, position, end = -1, await self._earliest(place), None
        refusals = 0
        while refusals < REFUSALS_MAX:
            if self.stage.is_cluster and self.target is None:
                await self._find_leader(place)  # its connection was lost, and a follower's high watermark may be lower
            part = await self._fetch(place, position)
            if part.error_code:
                refusals += 1
                await self._refused(place, part.error_code)
                if part.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    records, markers, start, position = [], [], -1, await self._earliest(place)
            else:
                if start < 0:
                    start, end = part.log_start_offset, part.high_watermark
                    position = max(position, start)
                assert end is not None
                found, next_offset, control = records_from(part.records, position)
                records += [each for each in found if each.offset < end]
                markers += [each for each in control if position <= each < end]
                is_over = next_offset in (position, end)
                position = next_offset
                if is_over or position > end:
                    self.note("audit", f"{place} {start}-{end}: {len(records)} records")
                    return Audit(place, start, end, records, tuple(markers))
        raise Violation(f"{place} cannot be read: {error_name(part.error_code)} again and again at offset {position}")

    async def _refused(self, place: Place, code: int) -> None:
        self.note("refused", f"{place} {error_name(code)}")
        await self.pause(BACKOFF_S_MAX)
        await self._find_leader(place)

    async def _find_leader(self, place: Place) -> None:
        """In a cluster: send the requests for `place` to its leader from now on."""
        question = MetadataRequest(topics=[MetadataRequestTopic(name=place.topic.name)], allow_auto_topic_creation=False)
        while self.stage.is_cluster:
            self.target = None
            answer = await self.ask_until_answered(question)
            leaders = {part.partition_index: part.leader_id for part in answer.topics[0].partitions}
            hosts = {broker.node_id: broker.host for broker in answer.brokers}
            self.target = hosts.get(leaders.get(place.number, -1))
            if self.target is not None:
                return
            await self.pause(BACKOFF_S_MAX)

    async def _fetch(self, place: Place, offset: int, isolation_level: int = 0) -> Any:
        answer = await self.ask_until_answered(fetch_request(place, offset, isolation_level), FETCH_VERSION)
        return answer.responses[0].partitions[0]

    async def _earliest(self, place: Place) -> int:
        while (answer := (await self.ask_until_answered(offset_request(place, EARLIEST))).topics[0].partitions[0]).error_code:
            await self._refused(place, answer.error_code)
        offset: int = answer.offset
        return offset

    async def audit_transactions(self, places: list[Place]) -> None:
        """Wait until all records are stable, and report to the checkers what a read_committed consumer gets."""
        begun_s = self.stage.now_s()
        for place in places:
            await self._find_leader(place)
            while True:
                stable, end = await self._end(place, 1), await self._end(place, 0)
                self.stage.checkers.stability_answered(place, stable, end, self.stage.now_s() - begun_s)
                if stable == end:
                    break
                await self.pause(BACKOFF_S_MAX)
            records, position = [], 0
            while position < end:
                part = await self._fetch(place, position, isolation_level=1)
                found, next_offset, _ = records_from(part.records, position, part.aborted_transactions)
                if part.error_code or next_offset == position:
                    await self._refused(place, part.error_code)
                records += found
                position = next_offset
            self.note("committed", f"{place} {len(records)} of {end}")
            self._record(place, records, is_committed=True)
            self.stage.checkers.audited_committed(place, records)

    async def _end(self, place: Place, isolation_level: int) -> int:
        request = offset_request(place, LATEST, isolation_level)
        while (answer := (await self.ask_until_answered(request)).topics[0].partitions[0]).error_code:
            await self._refused(place, answer.error_code)
        offset: int = answer.offset
        return offset

    async def ask_topics(self) -> None:
        """Report all topics to the checkers. No topic may be changed at the same time, and all nodes must know all changes."""
        self.target = None
        answer = await self.ask_until_answered(MetadataRequest(topics=None, allow_auto_topic_creation=False))
        found = {topic.name: (topic.topic_id, len(topic.partitions)) for topic in answer.topics if not topic.is_internal}
        self.note("topics", " ".join(f"{name}:{count}" for name, (_, count) in sorted(found.items())))
        resources = [
            DescribeConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=name, configuration_keys=None) for name in found
        ]
        configs: dict[str, dict[str, str]] = {}
        if resources:
            described = await self.ask_until_answered(DescribeConfigsRequest(resources=resources))
            configs = {each.resource_name: _set_on_topic(each) for each in described.results}
        self.stage.checkers.topics_answered(found, configs)

    async def ask_quorum(self) -> None:
        question = DescribeQuorumRequest(
            topics=[
                DescribeQuorumRequestTopicData(
                    topic_name="__cluster_metadata", partitions=[DescribeQuorumRequestPartitionData(partition_index=0)]
                )
            ]
        )
        answer = (await self.ask_until_answered(question)).topics[0].partitions[0]
        self.stage.checkers.quorum_answered(answer.leader_epoch, answer.high_watermark)


def _set_on_topic(result: Any) -> dict[str, str]:
    return {each.name: each.value for each in result.configs if each.config_source == DYNAMIC_TOPIC_CONFIG}
