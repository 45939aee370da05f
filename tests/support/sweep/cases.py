"""The cases of the sweep: for every API this broker serves, successful and refused requests in every version.

The order matters, since some cases change what later ones see. Topics: `sweep` (2 partitions, ten records in the first),
`keyed` (compacted), `shrinking` (for DeleteRecords), `grown` (for CreatePartitions); others are created and deleted by cases.
"""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from tests.support.logs.batches import make_batch
from tests.support.peers.topics import make_topic
from tests.support.sweep.sweep import Case, versions_of

from ottla.ids import Uuid
from ottla.wire.apis import APIS, ApiKey
from ottla.wire.base import Message
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.wire.messages.describe_producers import DescribeProducersRequest
from ottla.wire.messages.describe_producers import TopicRequest as ProducersTopic
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

T0 = 1_700_000_000_000
UNKNOWN_ID = Uuid(b"\x07" * 16)
FINAL_EPOCH = -1


class Topics:
    """The topics of the sweep: name → id."""

    def __init__(self, bootstrap: str) -> None:
        self.ids = {
            "sweep": make_topic(bootstrap, "sweep", 2, {"retention.ms": -1, "max.message.bytes": 5000}),
            "keyed": make_topic(bootstrap, "keyed", 1, {"cleanup.policy": "compact"}),
            "shrinking": make_topic(bootstrap, "shrinking", 1, {"retention.ms": -1}),
            "grown": make_topic(bootstrap, "grown"),
        }


def every_version(
    name: str, api_key: int, make: Callable[[int], Message | None], on_controller: bool = False
) -> Iterator[Case]:
    """A case in every version that `make` has a request for."""
    for version in versions_of(api_key):
        if make(version) is not None:
            yield Case(f"{APIS[api_key].name}: {name}", version, lambda version=version: make(version), on_controller)  # type: ignore[misc,return-value]


def record_cases(topics: Topics) -> Iterator[Case]:
    """The APIs around records."""
    yield from _produce(topics)
    yield from _fetch(topics)
    yield from _offsets()
    yield from _producers()


def _produce(topics: Topics) -> Iterator[Case]:
    def request(version: int, name: str, records: bytes, partitions: tuple[int, ...] = (0,), acks: int = -1) -> ProduceRequest:
        parts = [PartitionProduceData(index=index, records=records) for index in partitions]
        topic_id = topics.ids.get(name, UNKNOWN_ID) if version >= 13 else Uuid(bytes(16))
        topic = TopicProduceData(name=name, topic_id=topic_id, partition_data=parts)
        return ProduceRequest(acks=acks, timeout_ms=5000, topic_data=[topic])

    batch = bytes(make_batch(b"one", b"two"))
    cases = {
        "produce": lambda version: request(version, "sweep", batch, (0, 1)),
        "produce, acks 1": lambda version: request(version, "sweep", batch, (0,), 1),
        "produce, no such partition": lambda version: request(version, "sweep", batch, (0, 7)),
        "produce, no such topic": lambda version: request(version, "absent", batch),
        "produce without key": lambda version: request(version, "keyed", batch),
        "produce, too large": lambda version: request(version, "sweep", bytes(make_batch(b"x" * 6000))),
        "produce, acks 3": lambda version: request(version, "sweep", batch, (0,), 3),
        "produce, damaged": lambda version: request(version, "sweep", batch[:-2] + b"\0\0"),
        "produce, unknown sequence": lambda version: request(version, "sweep", bytes(make_batch(b"v", producer=(77, 0, 5)))),
    }
    for name, make in cases.items():
        yield from every_version(name, ApiKey.PRODUCE, make)


def _fetch(topics: Topics) -> Iterator[Case]:
    def request(version: int, name: str, *parts: FetchPartition, **extra: Any) -> FetchRequest:
        topic_id = topics.ids.get(name, UNKNOWN_ID) if version >= 13 else Uuid(bytes(16))
        topic = FetchTopic(topic=name, topic_id=topic_id, partitions=list(parts))
        return FetchRequest(
            max_wait_ms=extra.pop("max_wait_ms", 0),
            min_bytes=1,
            max_bytes=extra.pop("max_bytes", 1 << 20),
            session_epoch=FINAL_EPOCH,
            topics=[topic],
            **extra,
        )

    def part(index: int, offset: int, size: int = 1 << 20, **extra: Any) -> FetchPartition:
        return FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=size, **extra)

    cases: dict[str, Callable[[int], FetchRequest | None]] = {
        "fetch": lambda version: request(version, "sweep", part(0, 0), part(1, 1)),
        "fetch, committed": lambda version: request(version, "sweep", part(0, 0), isolation_level=1),
        "fetch, small": lambda version: request(version, "sweep", part(0, 3, 10), part(1, 0, 10), max_bytes=20),
        "fetch at the end": lambda version: request(version, "sweep", part(1, 22), max_wait_ms=10),
        "fetch out of range": lambda version: request(version, "sweep", part(0, 5000), part(1, -3)),
        "fetch, no such partition": lambda version: request(version, "sweep", part(5, 0)),
        "fetch, no such topic": lambda version: request(version, "absent", part(0, 0)),
        "fetch, later epoch": lambda version: request(version, "sweep", part(0, 0, current_leader_epoch=9)),
        "fetch, diverging": lambda version: (
            request(version, "sweep", part(0, 5, last_fetched_epoch=3)) if version >= 12 else None
        ),
    }
    for name, make in cases.items():
        yield from every_version(name, ApiKey.FETCH, make)


def _offsets() -> Iterator[Case]:
    def request(version: int, *timestamps: int, name: str = "sweep", **extra: Any) -> ListOffsetsRequest:
        level = extra.pop("isolation_level", 0)
        parts = [ListOffsetsPartition(partition_index=0, timestamp=timestamp, **extra) for timestamp in timestamps]
        return ListOffsetsRequest(replica_id=-1, isolation_level=level, topics=[ListOffsetsTopic(name=name, partitions=parts)])

    for special in (-1, -2, -3, -4, -5, -6, -7):
        yield from every_version(
            f"offsets {special}", ApiKey.LIST_OFFSETS, lambda version, special=special: request(version, special)
        )
    cases: dict[str, Callable[[int], Message | None]] = {
        "offsets by time": lambda version: request(version, T0 + 1),
        "offsets by a time too late": lambda version: request(version, T0 + 10**9),
        "offsets by time 0": lambda version: request(version, 0),
        "offsets, committed": lambda version: request(version, -1, isolation_level=1) if version >= 2 else None,
        "offsets, later epoch": lambda version: request(version, -1, current_leader_epoch=4),
        "offsets, no such topic": lambda version: request(version, -1, name="absent"),
    }
    for name, make in cases.items():
        yield from every_version(name, ApiKey.LIST_OFFSETS, make)

    def epoch(partition: int, leader_epoch: int, current: int = -1) -> Callable[[int], Message]:
        part = OffsetForLeaderPartition(partition=partition, leader_epoch=leader_epoch, current_leader_epoch=current)
        topic = OffsetForLeaderTopic(topic="sweep", partitions=[part])
        return lambda _: OffsetForLeaderEpochRequest(replica_id=-1, topics=[topic])

    for name, make in {
        "epoch 0": epoch(0, 0),
        "epoch 3": epoch(0, 3),
        "epoch of no partition": epoch(9, 0),
        "epoch, wrong current": epoch(0, 0, 6),
    }.items():
        yield from every_version(name, ApiKey.OFFSET_FOR_LEADER_EPOCH, make)


def _producers() -> Iterator[Case]:
    targets = count(0)

    def delete(offset: int | None, name: str = "shrinking") -> Callable[[int], Message]:
        def make(_: int) -> Message:
            part = DeleteRecordsPartition(partition_index=0, offset=next(targets) % 2 if offset is None else offset)
            return DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=name, partitions=[part])], timeout_ms=5000)

        return make

    for name, make in {
        "delete records": delete(0),
        "delete records, all": delete(-1),
        "delete records, too many": delete(99),
        "delete records of an absent topic": delete(1, "absent"),
        "delete records of a compacted topic": delete(0, "keyed"),
    }.items():
        yield from every_version(name, ApiKey.DELETE_RECORDS, make)

    def producers(name: str, *partitions: int) -> Callable[[int], Message]:
        return lambda _: DescribeProducersRequest(topics=[ProducersTopic(name=name, partition_indexes=list(partitions))])

    yield from every_version("producers", ApiKey.DESCRIBE_PRODUCERS, producers("sweep", 0, 1, 5))
    yield from every_version("producers of an absent topic", ApiKey.DESCRIBE_PRODUCERS, producers("absent", 0))
    yield from every_version(
        "producer id", ApiKey.INIT_PRODUCER_ID, lambda _: InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
    )
    yield from every_version(
        "producer id, empty transaction", ApiKey.INIT_PRODUCER_ID, lambda _: InitProducerIdRequest(transactional_id="")
    )
    yield from every_version(
        "producer id, epoch only",
        ApiKey.INIT_PRODUCER_ID,
        lambda version: (
            InitProducerIdRequest(transactional_id=None, producer_id=-1, producer_epoch=3) if version >= 3 else None
        ),
    )


def metadata_cases(topics: Topics) -> Iterator[Case]:
    """Metadata and ApiVersions."""

    def named(version: int, *names: str) -> MetadataRequest:
        wanted = [MetadataRequestTopic(name=name) for name in names]
        asks = version >= 8
        return MetadataRequest(
            topics=wanted,
            allow_auto_topic_creation=version < 4,
            include_topic_authorized_operations=asks,
            include_cluster_authorized_operations=asks and version <= 10,
        )

    def by_id(version: int, topic_id: Uuid) -> MetadataRequest | None:
        if version < 10:
            return None
        wanted = [MetadataRequestTopic(name=None, topic_id=topic_id)]
        return MetadataRequest(topics=wanted, allow_auto_topic_creation=False)

    cases: dict[str, Callable[[int], Message | None]] = {
        "metadata": lambda version: named(version, "sweep", "keyed"),
        "metadata, invalid name": lambda version: named(version, "not/valid"),
        "metadata, absent": lambda version: named(version, "absent") if version >= 4 else None,
        "metadata of nothing": lambda version: MetadataRequest(topics=[]) if version >= 1 else None,
        "metadata by id": lambda version: by_id(version, topics.ids["sweep"]),
        "metadata by an unknown id": lambda version: by_id(version, UNKNOWN_ID),
    }
    for name, make in cases.items():
        yield from every_version(name, ApiKey.METADATA, make)
    versions = {
        "api versions": ApiVersionsRequest(client_software_name="sweep", client_software_version="1.0"),
        "api versions, odd name": ApiVersionsRequest(client_software_name="a b!", client_software_version=""),
    }
    for name, request in versions.items():
        yield from every_version(name, ApiKey.API_VERSIONS, lambda _, request=request: request)
        yield from every_version(name, ApiKey.API_VERSIONS, lambda _, request=request: request, on_controller=True)
