"""One of two topics fails, in every API that names topics and every served version: the other is handled normally."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.peers.broker_links import connected

from ottla import Admin
from ottla.broker.requests.apis import SERVED
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid
from ottla.records.builder import build_produce_batch
from ottla.testing import Broker
from ottla.wire.apis import APIS, ApiKey
from ottla.wire.messages import alter_configs as ac
from ottla.wire.messages import create_partitions as cp
from ottla.wire.messages import create_topics as ct
from ottla.wire.messages import delete_records as dr
from ottla.wire.messages import delete_topics as dt
from ottla.wire.messages import describe_configs as dc
from ottla.wire.messages import describe_producers as dp
from ottla.wire.messages import describe_topic_partitions as dtp
from ottla.wire.messages import elect_leaders as el
from ottla.wire.messages import fetch as f
from ottla.wire.messages import incremental_alter_configs as iac
from ottla.wire.messages import list_offsets as lo
from ottla.wire.messages import metadata as m
from ottla.wire.messages import offset_commit as oc
from ottla.wire.messages import offset_delete as od
from ottla.wire.messages import offset_for_leader_epoch as ole
from ottla.wire.messages import produce as p
from ottla.wire.messages import txn_offset_commit as toc

GOOD, BAD = "good", "bad"
ERROR = ErrorCode.TOPIC_AUTHORIZATION_FAILED
Build = Callable[[tuple[str, ...], dict[str, Uuid], int], Any]

CASES: dict[int, Build] = {
    ApiKey.PRODUCE: lambda names, ids, v: p.ProduceRequest(
        acks=-1,
        timeout_ms=1000,
        topic_data=[
            p.TopicProduceData(
                name=name,
                topic_id=ids[name],
                partition_data=[
                    p.PartitionProduceData(index=0, records=memoryview(build_produce_batch([(0, b"k", b"v", ())])))
                ],
            )
            for name in names
        ],
    ),
    ApiKey.FETCH: lambda names, ids, v: f.FetchRequest(
        max_bytes=1 << 20,
        topics=[
            f.FetchTopic(
                topic=name, topic_id=ids[name], partitions=[f.FetchPartition(partition=0, partition_max_bytes=1 << 20)]
            )
            for name in names
        ],
    ),
    ApiKey.LIST_OFFSETS: lambda names, ids, v: lo.ListOffsetsRequest(
        replica_id=-1,
        topics=[
            lo.ListOffsetsTopic(name=name, partitions=[lo.ListOffsetsPartition(partition_index=0, timestamp=-1)])
            for name in names
        ],
    ),
    ApiKey.OFFSET_COMMIT: lambda names, ids, v: oc.OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=-1,
        topics=[
            oc.OffsetCommitRequestTopic(
                name=name,
                topic_id=ids[name],
                partitions=[oc.OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")],
            )
            for name in names
        ],
    ),
    ApiKey.TXN_OFFSET_COMMIT: lambda names, ids, v: toc.TxnOffsetCommitRequest(
        group_id="g",
        transactional_id="t",
        topics=[
            toc.TxnOffsetCommitRequestTopic(
                name=name, partitions=[toc.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)]
            )
            for name in names
        ],
    ),
    ApiKey.OFFSET_DELETE: lambda names, ids, v: od.OffsetDeleteRequest(
        group_id="g",
        topics=[
            od.OffsetDeleteRequestTopic(name=name, partitions=[od.OffsetDeleteRequestPartition(partition_index=0)])
            for name in names
        ],
    ),
    ApiKey.METADATA: lambda names, ids, v: m.MetadataRequest(topics=[m.MetadataRequestTopic(name=name) for name in names]),
    ApiKey.CREATE_TOPICS: lambda names, ids, v: ct.CreateTopicsRequest(
        timeout_ms=5000, topics=[ct.CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    ),
    ApiKey.DELETE_TOPICS: lambda names, ids, v: dt.DeleteTopicsRequest(
        timeout_ms=5000,
        topics=[dt.DeleteTopicState(name=name) for name in names] if v >= 6 else [],
        topic_names=list(names) if v < 6 else [],
    ),
    ApiKey.DELETE_RECORDS: lambda names, ids, v: dr.DeleteRecordsRequest(
        timeout_ms=5000,
        topics=[
            dr.DeleteRecordsTopic(name=name, partitions=[dr.DeleteRecordsPartition(partition_index=0, offset=0)])
            for name in names
        ],
    ),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: lambda names, ids, v: ole.OffsetForLeaderEpochRequest(
        replica_id=-1,
        topics=[
            ole.OffsetForLeaderTopic(topic=name, partitions=[ole.OffsetForLeaderPartition(partition=0, leader_epoch=0)])
            for name in names
        ],
    ),
    ApiKey.DESCRIBE_CONFIGS: lambda names, ids, v: dc.DescribeConfigsRequest(
        resources=[dc.DescribeConfigsResource(resource_type=2, resource_name=name) for name in names]
    ),
    ApiKey.ALTER_CONFIGS: lambda names, ids, v: ac.AlterConfigsRequest(
        resources=[ac.AlterConfigsResource(resource_type=2, resource_name=name) for name in names], validate_only=True
    ),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: lambda names, ids, v: iac.IncrementalAlterConfigsRequest(
        resources=[
            iac.AlterConfigsResource(
                resource_type=2,
                resource_name=name,
                configs=[iac.AlterableConfig(name="retention.ms", config_operation=0, value="1000")],
            )
            for name in names
        ]
    ),
    ApiKey.CREATE_PARTITIONS: lambda names, ids, v: cp.CreatePartitionsRequest(
        timeout_ms=5000, validate_only=True, topics=[cp.CreatePartitionsTopic(name=name, count=9) for name in names]
    ),
    ApiKey.ELECT_LEADERS: lambda names, ids, v: el.ElectLeadersRequest(
        timeout_ms=5000, topic_partitions=[el.TopicPartitions(topic=name, partitions=[0]) for name in names]
    ),
    ApiKey.DESCRIBE_PRODUCERS: lambda names, ids, v: dp.DescribeProducersRequest(
        topics=[dp.TopicRequest(name=name, partition_indexes=[0]) for name in names]
    ),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: lambda names, ids, v: dtp.DescribeTopicPartitionsRequest(
        topics=[dtp.TopicRequest(name=name) for name in names], response_partition_limit=100
    ),
}


NAMING_TOPICS = {key: api.topics for key, api in SERVED.items() if api.topics is not None}
VERSIONS = [
    # The versions between the oldest and the newest are slow.
    pytest.param(key, version, id=f"{APIS[key].name}-{version}", marks=() if version in (oldest, newest) else pytest.mark.slow)
    for key in NAMING_TOPICS
    for oldest, newest in [(APIS[key].oldest, APIS[key].advertised()[1])]
    for version in range(oldest, newest + 1)
]


def errors(key: int, response: Any, ids: dict[str, Uuid]) -> dict[str, int]:
    """Topic → error."""
    fields, found = NAMING_TOPICS[key], {}
    names = {id: name for name, id in ids.items()}
    for entry in getattr(response, fields.answers):
        name = getattr(entry, fields.name) or names[entry.topic_id]
        entries = [entry] if fields.answer_partitions is None else getattr(entry, fields.answer_partitions)
        (found[name],) = {each.error_code for each in entries}
    return found


def test_every_api_that_knows_topics_has_a_case() -> None:
    assert set(CASES) == set(NAMING_TOPICS)


@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_one_of_two_topics_fails(broker: Broker, key: int, version: int) -> None:
    for name in (GOOD, BAD):
        if name not in broker.topics() and key != ApiKey.CREATE_TOPICS:
            broker.create_topic(name)
        elif name in broker.topics() and key == ApiKey.CREATE_TOPICS:
            broker.delete_topic(name)
    if key == ApiKey.OFFSET_DELETE:  # of a group that is there
        with Admin(broker.bootstrap_servers) as admin:
            admin.alter_consumer_group_offsets("g", {(GOOD, 0): 1}).raise_first()

    async def ask() -> None:
        async with connected(broker) as link:
            described = await link.request(m.MetadataRequest(topics=None))
            ids = {GOOD: Uuid(bytes(16)), BAD: Uuid(bytes(16))} | {each.name: each.topic_id for each in described.topics}
            fault = broker.faults.fail(key, ERROR, topic=BAD)
            both = errors(key, await link.request(CASES[key]((GOOD, BAD), ids, version), version=version), ids)
            assert set(both) == {GOOD, BAD}
            assert both[BAD] == ERROR
            assert both[GOOD] != ERROR
            alone = errors(key, await link.request(CASES[key]((BAD,), ids, version), version=version), ids)
            assert alone == {BAD: ERROR}
            assert fault.hits == 2

    asyncio.run(ask())


@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_all_topics_fail(broker: Broker, key: int, version: int) -> None:
    for name in (GOOD, BAD):
        if name not in broker.topics():
            broker.create_topic(name)

    async def ask() -> None:
        async with connected(broker) as link:
            described = await link.request(m.MetadataRequest(topics=None))
            ids = {each.name: each.topic_id for each in described.topics}
            fault = broker.faults.fail(key, ERROR)
            response = await link.request(CASES[key]((GOOD, BAD), ids, version), version=version)
            assert errors(key, response, ids) == {GOOD: ERROR, BAD: ERROR}
            assert fault.hits == 1

    asyncio.run(ask())
