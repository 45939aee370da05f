"""A cluster made of plain data, and a driver that runs machines against it without a loop."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from ottla.client_core.coordinators import CoordinatorFinder, CoordinatorKind
from ottla.client_core.machine import Request
from ottla.client_core.metadata import Metadata
from ottla.errors import NetworkError
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition, Uuid
from ottla.records.builder import build_batch
from ottla.records.compression import Codec
from ottla.records.control import build_end_marker
from ottla.records.kernels import Record
from ottla.wire.codec import decode, encode
from ottla.wire.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    PartitionData,
)
from ottla.wire.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ottla.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)

FETCH_VERSION = 17
TOPIC = "t"


def settings(**changes: Any) -> SimpleNamespace:
    """The settings of a consumer that machines read, with Kafka's defaults."""
    values: dict[str, Any] = {
        "fetch_min_bytes": 1,
        "fetch_max_bytes": 52_428_800,
        "fetch_max_wait_ms": 500,
        "max_partition_fetch_bytes": 1_048_576,
        "check_crcs": True,
        "isolation_level": "read_uncommitted",
        "client_rack": "",
        "metadata_max_age_ms": 300_000,
        "metadata_recovery_rebootstrap_trigger_ms": 300_000,
        "metadata_recovery_strategy": "rebootstrap",
        "request_timeout_ms": 30_000,
        "retry_backoff_ms": 100,
        "retry_backoff_max_ms": 1_000,
        "auto_offset_reset": "earliest",
        "auto_offset_reset_duration_ms": None,
    }
    return SimpleNamespace(**(values | changes))


def no_chance(limit: int) -> int:
    """Randomness without any."""
    return limit // 2


@dataclass
class FakePartition:
    """One partition: its batches as they are on the wire, and what a reader may see."""

    leader: int = 1
    epoch: int = 0
    batches: list[tuple[int, int, bytes]] = field(default_factory=list)
    """(first offset, next offset, bytes)."""
    visible: dict[int, bytes] = field(default_factory=dict)
    """Values by offset, without control records and what was aborted."""
    aborted: list[tuple[int, int, int]] = field(default_factory=list)
    """(first offset, last offset, producer id) of aborted transactions."""
    start: int = 0
    end: int = 0

    def append(self, values: list[bytes], codec: Codec = Codec.NONE, *, is_visible: bool = True, **producer: Any) -> None:
        """Write one batch."""
        records = [Record(self.end + index, 1_000 + self.end + index, None, value) for index, value in enumerate(values)]
        batch = build_batch(records, codec=codec, leader_epoch=self.epoch, **producer)
        self._add(batch, len(values))
        if is_visible:
            self.visible.update({record.offset: record.value or b"" for record in records})

    def append_transaction(self, values: list[bytes], producer_id: int, *, is_commit: bool) -> None:
        """Write the batch of one transaction and its end marker."""
        first = self.end
        producer: dict[str, Any] = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
        self.append(values, is_visible=is_commit, **producer)
        marker = build_end_marker(
            is_commit=is_commit,
            producer_id=producer_id,
            producer_epoch=0,
            coordinator_epoch=0,
            timestamp_ms=1,
            base_offset=self.end,
            leader_epoch=self.epoch,
        )
        if not is_commit:
            self.aborted.append((first, self.end, producer_id))
        self._add(marker, 1)

    def _add(self, batch: bytearray, count: int) -> None:
        self.batches.append((self.end, self.end + count, bytes(batch)))
        self.end += count

    def read(self, offset: int, bytes_max: int) -> bytes:
        """Whole batches from the one that holds `offset` on, at least one; then a piece of the next, as brokers do."""
        data = bytearray()
        for _, next_offset, batch in self.batches:
            if next_offset <= offset:
                continue
            if data and len(data) + len(batch) > bytes_max:
                data += batch[: max(0, bytes_max - len(data))]
                break
            data += batch
        return bytes(data)


class FakeCluster:
    """Brokers 1 and 2 with one topic."""

    def __init__(self, partitions: int = 2, *, is_committed_only: bool = False) -> None:
        self.topic_id = Uuid(b"topic-id-0000001")
        self.partitions = [FakePartition() for _ in range(partitions)]
        self.sessions: dict[int, dict[tuple[Uuid, int], Any]] = {}
        self.epochs: dict[int, int] = {}
        self.next_session = 1
        self.is_committed_only = is_committed_only
        self.fetch_error: dict[int, int] = {}
        """Errors of the next Fetch response, by partition."""

    def answer(self, request: Request) -> tuple[Any, int]:
        """The response to a request, through the wire, and its version."""
        message = request.message if request.adapt is None else request.adapt(12)
        if isinstance(message, MetadataRequest):
            return self._metadata(), 12
        if isinstance(message, FetchRequest):
            return _through_wire(self._fetch(message, request.node), FETCH_VERSION), FETCH_VERSION
        if isinstance(message, ListOffsetsRequest):
            return self._list_offsets(message), 10
        if isinstance(message, OffsetForLeaderEpochRequest):
            return self._end_of_epoch(message), 4
        raise AssertionError(f"no answer for {message}")

    def _metadata(self) -> MetadataResponse:
        partitions = [
            MetadataResponsePartition(
                partition_index=index, leader_id=each.leader, leader_epoch=each.epoch, replica_nodes=[1, 2]
            )
            for index, each in enumerate(self.partitions)
        ]
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=node, host="h", port=node) for node in (1, 2)],
            topics=[MetadataResponseTopic(name=TOPIC, topic_id=self.topic_id, partitions=partitions)],
        )

    def _fetch(self, message: FetchRequest, node: int) -> FetchResponse:
        if message.session_epoch == 0:
            self.sessions.pop(message.session_id, None)
            session_id, self.next_session = self.next_session, self.next_session + 1
            self.sessions[session_id] = {}
            self.epochs[session_id] = 1
        elif message.session_id not in self.sessions:
            return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        elif message.session_epoch != self.epochs[message.session_id]:
            return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        else:
            session_id = message.session_id
            self.epochs[session_id] += 1
        known = self.sessions[session_id]
        for forgotten in message.forgotten_topics_data:
            for index in forgotten.partitions:
                del known[forgotten.topic_id, index]
        for topic in message.topics:
            for wanted in topic.partitions:
                known[topic.topic_id, wanted.partition] = wanted
        data: dict[Uuid, list[PartitionData]] = {}
        for (topic_id, index), wanted in known.items():
            found = self._fetch_partition(topic_id, index, wanted, node)
            if message.session_epoch == 0 or found.error_code or found.records:
                data.setdefault(topic_id, []).append(found)
        responses = [FetchableTopicResponse(topic_id=topic_id, partitions=found) for topic_id, found in data.items()]
        return FetchResponse(session_id=session_id, responses=responses)

    def _fetch_partition(self, topic_id: Uuid, index: int, wanted: Any, node: int) -> PartitionData:
        partition = self.partitions[index]
        code = self.fetch_error.pop(index, 0)
        hint = None
        if topic_id != self.topic_id:
            code = ErrorCode.UNKNOWN_TOPIC_ID
        elif not code and partition.leader != node:
            code, hint = (
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                LeaderIdAndEpoch(leader_id=partition.leader, leader_epoch=partition.epoch),
            )
        elif not code and wanted.current_leader_epoch < partition.epoch:
            code = ErrorCode.FENCED_LEADER_EPOCH
        elif not code and not partition.start <= wanted.fetch_offset <= partition.end:
            code = ErrorCode.OFFSET_OUT_OF_RANGE
        if code:
            return PartitionData(partition_index=index, error_code=code, high_watermark=-1, current_leader=hint, records=b"")
        aborted = [
            AbortedTransaction(producer_id=producer_id, first_offset=first)
            for first, last, producer_id in partition.aborted
            if last >= wanted.fetch_offset
        ]
        return PartitionData(
            partition_index=index,
            high_watermark=partition.end,
            last_stable_offset=partition.end,
            log_start_offset=partition.start,
            aborted_transactions=aborted if self.is_committed_only else None,
            records=partition.read(wanted.fetch_offset, wanted.partition_max_bytes),
        )

    def _list_offsets(self, message: ListOffsetsRequest) -> ListOffsetsResponse:
        topics = []
        for topic in message.topics:
            found = []
            for wanted in topic.partitions:
                partition = self.partitions[wanted.partition_index]
                offset = partition.start if wanted.timestamp == -2 else partition.end
                found.append(
                    ListOffsetsPartitionResponse(partition_index=wanted.partition_index, offset=offset, leader_epoch=0)
                )
            topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=found))
        return ListOffsetsResponse(topics=topics)

    def _end_of_epoch(self, message: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
        topics = []
        for topic in message.topics:
            found = []
            for wanted in topic.partitions:
                partition = self.partitions[wanted.partition]
                if wanted.current_leader_epoch < partition.epoch:
                    found.append(EpochEndOffset(partition=wanted.partition, error_code=ErrorCode.FENCED_LEADER_EPOCH))
                else:
                    epoch, end = wanted.leader_epoch, partition.end
                    found.append(EpochEndOffset(partition=wanted.partition, leader_epoch=epoch, end_offset=end))
            topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=found))
        return OffsetForLeaderEpochResponse(topics=topics)


def _through_wire(message: Any, version: int) -> Any:
    frame = b"".join(bytes(part) for part in encode(message, version))  # type: ignore[arg-type]  # never a file range
    return decode(type(message), version, bytearray(frame))[0]


class Driver:
    """Runs machines: keeps what they send until a test says what becomes of it."""

    def __init__(self, cluster: FakeCluster, *machines: Any) -> None:
        self.cluster = cluster
        self.machines = machines
        self.in_flight: list[tuple[Any, Request]] = []
        self.now_ms = 1_000

    def step(self) -> None:
        """Rounds of all machines as the runner has them: until none sends anything and none is due."""
        for _ in range(20):
            sent = self._round()
            self.in_flight += sent
            if not sent and not self._is_due():
                left = self._round()
                assert not left, f"no machine said that it was due, and yet it was: {left}"
                return
        raise AssertionError("the machines are due again and again: the runner would spin")

    def _round(self) -> list[tuple[Any, Request]]:
        return [(machine, request) for machine in self.machines for request in machine.step(self.now_ms)]

    def _is_due(self) -> bool:
        deadlines = [machine.next_deadline_ms() for machine in self.machines]
        return any(at_ms is not None and at_ms <= self.now_ms for at_ms in deadlines)

    def deliver(self, index: int = 0) -> None:
        """Answer one request."""
        machine, request = self.in_flight.pop(index)
        response, version = self.cluster.answer(request)
        machine.answered(request, response, version, self.now_ms)

    def lose(self, index: int = 0, *, is_seen: bool = False) -> None:
        """The connection of one request ends, before or after the broker has seen it."""
        machine, request = self.in_flight.pop(index)
        if is_seen:
            self.cluster.answer(request)
        machine.failed(request, NetworkError("the connection was lost"), self.now_ms)

    def settle(self, rounds: int = 30, step_ms: int = 200) -> None:
        """Let time pass and answer everything, until nothing is left to do or the rounds are over."""
        for _ in range(rounds):
            self.step()
            while self.in_flight:
                self.deliver()
                self.step() if len(self.in_flight) == 0 else None
                if all(isinstance(request.message, FetchRequest) for _, request in self.in_flight):
                    break
            self.now_ms += step_ms


def known_metadata(cluster: FakeCluster) -> Metadata:
    """Metadata that has seen the cluster."""
    metadata = Metadata(settings(), no_chance)
    metadata.want([TOPIC])
    for request in metadata.step(0):
        metadata.answered(request, cluster._metadata(), 12, 0)
    return metadata


def finder_of(metadata: Metadata) -> CoordinatorFinder:
    """The finder of group g's coordinator, which knows nothing yet."""
    return CoordinatorFinder(metadata, CoordinatorKind.GROUP, "g", settings(), no_chance)


def find_coordinator(finder: CoordinatorFinder, code: int = 0, now_ms: int = 0) -> None:
    """Answer the search of `finder`, which must be wanted: node 2, or the error `code`."""
    (request,) = finder.step(now_ms)
    found = Coordinator(key="g", node_id=2, host="h", port=2, error_code=code, error_message=None)
    finder.answered(request, FindCoordinatorResponse(coordinators=[found]), 6, now_ms)


def place(partition: int) -> TopicPartition:
    return TopicPartition(TOPIC, partition)
