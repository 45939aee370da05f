"""confluent-kafka's admin client: topics, partitions, configs, offsets and the cluster, as with Apache Kafka."""

from collections.abc import Mapping
from typing import Any

import pytest
from confluent_kafka import ElectionType, IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition, Uuid
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)
from tests.support.peers.clients import CLIENTS, Outgoing, ProducerOptions
from tests.support.peers.topics import await_gone, await_leaders, await_true, describe_topic, make_topic
from tests.support.servers.kafka_server import KafkaServer

JUNE_2020_MS = 1_592_000_000_000


@pytest.fixture
def admin(cluster: KafkaServer) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})


def result_of(futures: Mapping[Any, Any]) -> Any:
    """The result of a call about one thing."""
    (future,) = futures.values()
    return future.result(30)


def code_of(futures: Mapping[Any, Any]) -> int:
    """Kafka's error code of a call about one thing; 0 if it succeeded."""
    try:
        result_of(futures)
    except KafkaException as failure:
        return int(failure.args[0].code())
    return 0


def configs_of(admin: AdminClient, kind: ResourceType, name: str) -> dict[str, ConfigEntry]:
    found: dict[str, ConfigEntry] = result_of(admin.describe_configs([ConfigResource(kind, name)]))
    return found


def send(cluster: KafkaServer, topic: str, *timestamps_ms: int) -> None:
    sent = [Outgoing(b"v", partition=0, timestamp_ms=timestamp_ms) for timestamp_ms in timestamps_ms]
    CLIENTS["confluent"]().produce(cluster.bootstrap, topic, sent, ProducerOptions())


def test_create_describe_delete(admin: AdminClient, cluster: KafkaServer, topic: str) -> None:
    result_of(admin.create_topics([NewTopic(topic, 4, 1, config={"retention.ms": "1234567"})]))
    await_leaders(cluster.bootstrap, topic, 4)
    described = result_of(admin.describe_topics(TopicCollection([topic]), include_authorized_operations=True))
    assert described.name == topic
    assert not described.is_internal
    assert str(described.topic_id) not in ("", "AAAAAAAAAAAAAAAAAAAAAA")
    assert [part.id for part in described.partitions] == [0, 1, 2, 3]
    for part in described.partitions:
        assert part.leader.id == 1
        assert [node.id for node in part.replicas] == [node.id for node in part.isr] == [1]
    assert {operation.name for operation in described.authorized_operations} == {
        *("READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS")
    }
    entry = configs_of(admin, ResourceType.TOPIC, topic)["retention.ms"]
    assert (entry.value, entry.source) == ("1234567", ConfigSource.DYNAMIC_TOPIC_CONFIG.value)
    result_of(admin.delete_topics([topic]))
    await_gone(cluster.bootstrap, topic)
    assert code_of(admin.describe_topics(TopicCollection([topic]))) == 3


def test_defaults_of_the_broker(admin: AdminClient, cluster: KafkaServer, topic: str) -> None:
    result_of(admin.create_topics([NewTopic(topic)]))
    await_leaders(cluster.bootstrap, topic, 3)
    (partition, *_) = describe_topic(cluster.bootstrap, topic).partitions
    assert partition.replica_nodes == [1]


def test_explicit_assignment(admin: AdminClient, cluster: KafkaServer, topic: str) -> None:
    result_of(admin.create_topics([NewTopic(topic, 2, replica_assignment=[[1], [1]])]))
    await_leaders(cluster.bootstrap, topic, 2)
    assert code_of(admin.create_topics([NewTopic(f"{topic}-2", 1, replica_assignment=[[7]])])) == 39


def test_validate_only(admin: AdminClient, cluster: KafkaServer, topic: str) -> None:
    assert code_of(admin.create_topics([NewTopic(topic, 1, 1)], validate_only=True)) == 0
    assert describe_topic(cluster.bootstrap, topic).error_code == 3
    assert code_of(admin.create_topics([NewTopic(topic, 1, 5)], validate_only=True)) == 38


@pytest.mark.parametrize(
    ("partitions", "replicas", "config", "code"),
    [
        (0, 1, {}, 37),
        (1, 2, {}, 38),
        (1, 0, {}, 38),
        (1, 1, {"no.such.config": "1"}, 40),
        (1, 1, {"retention.ms": "soon"}, 40),
        (1, 1, {"cleanup.policy": "shred"}, 40),
    ],
)
def test_refused_creations(
    admin: AdminClient, topic: str, partitions: int, replicas: int, config: dict[str, str], code: int
) -> None:
    assert code_of(admin.create_topics([NewTopic(topic, partitions, replicas, config=config)])) == code


@pytest.mark.parametrize("name", ["", "..", "a b", "a/b", "x" * 250])
def test_refused_names(admin: AdminClient, name: str) -> None:
    assert code_of(admin.create_topics([NewTopic(name, 1, 1)])) == 17


def test_names_that_collide(admin: AdminClient, cluster: KafkaServer, topic: str) -> None:
    dotted, underscored = f"{topic}.same", f"{topic}_same"
    make_topic(cluster.bootstrap, dotted)
    assert code_of(admin.create_topics([NewTopic(dotted, 1, 1)])) == 36
    assert code_of(admin.create_topics([NewTopic(underscored, 1, 1)])) == 17


def test_create_partitions(admin: AdminClient, cluster: KafkaServer, topic: str) -> None:
    make_topic(cluster.bootstrap, topic, 2)
    result_of(admin.create_partitions([NewPartitions(topic, 5)]))
    await_leaders(cluster.bootstrap, topic, 5)
    assert code_of(admin.create_partitions([NewPartitions(topic, 5)])) == 37
    assert code_of(admin.create_partitions([NewPartitions(topic, 3)])) == 37
    assert code_of(admin.create_partitions([NewPartitions(f"{topic}-none", 3)])) == 3
    assert code_of(admin.create_partitions([NewPartitions(topic, 9)], validate_only=True)) == 0
    assert len(describe_topic(cluster.bootstrap, topic).partitions) == 5


def test_alter_topic_configs(admin: AdminClient, cluster: KafkaServer, topic: str) -> None:
    make_topic(cluster.bootstrap, topic, configs={"segment.bytes": 2_000_000})

    def change(name: str, value: str | None, operation: AlterConfigOpType) -> int:
        entry = ConfigEntry(name, value, incremental_operation=operation)
        return code_of(
            admin.incremental_alter_configs([ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])])
        )

    def await_values(**expected: str) -> dict[str, ConfigEntry]:
        wanted = {name.replace("_", "."): value for name, value in expected.items()}
        await_true(
            lambda: {name: configs_of(admin, ResourceType.TOPIC, topic)[name].value for name in wanted} == wanted,
            f"the settings to be {wanted}",
        )
        return configs_of(admin, ResourceType.TOPIC, topic)

    assert change("delete.retention.ms", "5000000", AlterConfigOpType.SET) == 0
    assert change("cleanup.policy", "compact", AlterConfigOpType.APPEND) == 0
    await_values(delete_retention_ms="5000000", cleanup_policy="delete,compact", segment_bytes="2000000")
    assert change("cleanup.policy", "delete", AlterConfigOpType.SUBTRACT) == 0
    assert change("delete.retention.ms", None, AlterConfigOpType.DELETE) == 0
    configs = await_values(delete_retention_ms="86400000", cleanup_policy="compact")
    assert configs["delete.retention.ms"].is_default
    assert change("retention.ms", "1", AlterConfigOpType.APPEND) == 40, "only lists can be appended to"
    assert change("no.such", "1", AlterConfigOpType.SET) == 40


def test_topic_configs_have_synonyms(admin: AdminClient, cluster: KafkaServer, topic: str) -> None:
    make_topic(cluster.bootstrap, topic, configs={"retention.ms": "777777"})
    entry = configs_of(admin, ResourceType.TOPIC, topic)["file.delete.delay.ms"]
    assert (entry.value, entry.source) == ("100", ConfigSource.STATIC_BROKER_CONFIG.value), "from the broker's file"
    assert list(entry.synonyms) == ["log.segment.delete.delay.ms"]
    retention = configs_of(admin, ResourceType.TOPIC, topic)["retention.ms"]
    assert not retention.is_default
    assert not retention.is_read_only
    assert not retention.is_sensitive


def test_broker_configs(admin: AdminClient, cluster: KafkaServer) -> None:
    configs = configs_of(admin, ResourceType.BROKER, "1")
    assert configs["num.partitions"].value == "3"
    assert configs["num.partitions"].source == ConfigSource.STATIC_BROKER_CONFIG.value
    assert configs["num.partitions"].is_read_only
    assert configs["log.retention.hours"].is_default
    operation = ConfigEntry("log.cleaner.threads", "2", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[operation])
    assert code_of(admin.incremental_alter_configs([resource])) == 0
    await_true(
        lambda: configs_of(admin, ResourceType.BROKER, "1")["log.cleaner.threads"].value == "2", "the broker to have the value"
    )
    entry = configs_of(admin, ResourceType.BROKER, "1")["log.cleaner.threads"]
    assert entry.source == ConfigSource.DYNAMIC_BROKER_CONFIG.value
    operation = ConfigEntry("log.cleaner.threads", None, incremental_operation=AlterConfigOpType.DELETE)
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[operation])
    assert code_of(admin.incremental_alter_configs([resource])) == 0
    static = ConfigEntry("num.partitions", "8", incremental_operation=AlterConfigOpType.SET)
    refused = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[static])
    assert code_of(admin.incremental_alter_configs([refused])) in (40, 42), "it is read when the broker starts"


def test_describe_cluster(admin: AdminClient, cluster: KafkaServer) -> None:
    found = admin.describe_cluster(include_authorized_operations=True).result(30)
    assert found.cluster_id == "b3R0bGEtdGVzdHMtMDAwMQ"
    assert [(node.id, node.host, node.port) for node in found.nodes] == [(1, "127.0.0.1", cluster.port)]
    assert found.controller.id == 1
    assert {operation.name for operation in found.authorized_operations} == {
        *("CREATE", "ALTER", "DESCRIBE", "CLUSTER_ACTION", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE")
    }
    listed = admin.list_topics(timeout=30)
    assert listed.cluster_id == found.cluster_id
    assert listed.controller_id == 1


def test_list_offsets(admin: AdminClient, cluster: KafkaServer, topic: str) -> None:
    make_topic(cluster.bootstrap, topic)
    partition = TopicPartition(topic, 0)
    for spec, offset in ((OffsetSpec.earliest(), 0), (OffsetSpec.latest(), 0), (OffsetSpec.max_timestamp(), -1)):
        assert result_of(admin.list_offsets({partition: spec})).offset == offset
    send(cluster, topic, JUNE_2020_MS, JUNE_2020_MS + 500, JUNE_2020_MS + 100)
    expected = [
        (OffsetSpec.earliest(), 0, -1),
        (OffsetSpec.latest(), 3, -1),
        (OffsetSpec.max_timestamp(), 1, JUNE_2020_MS + 500),
        (OffsetSpec.for_timestamp(JUNE_2020_MS + 1), 1, JUNE_2020_MS + 500),
        (OffsetSpec.for_timestamp(JUNE_2020_MS + 501), -1, -1),
    ]
    for spec, offset, timestamp_ms in expected:
        for level in (IsolationLevel.READ_UNCOMMITTED, IsolationLevel.READ_COMMITTED):
            found = result_of(admin.list_offsets({partition: spec}, isolation_level=level))
            assert (found.offset, found.timestamp) == (offset, timestamp_ms)
    assert code_of(admin.list_offsets({TopicPartition(topic, 9): OffsetSpec.latest()})) == KafkaError._NOENT


def test_delete_records(admin: AdminClient, cluster: KafkaServer, topic: str) -> None:
    make_topic(cluster.bootstrap, topic)
    send(cluster, topic, *range(JUNE_2020_MS, JUNE_2020_MS + 10))
    assert result_of(admin.delete_records([TopicPartition(topic, 0, 4)])).low_watermark == 4
    assert result_of(admin.list_offsets({TopicPartition(topic, 0): OffsetSpec.earliest()})).offset == 4
    assert code_of(admin.delete_records([TopicPartition(topic, 0, 11)])) == 1
    assert result_of(admin.delete_records([TopicPartition(topic, 0, -1)])).low_watermark == 10


def test_elect_leaders(admin: AdminClient, cluster: KafkaServer, topic: str) -> None:
    make_topic(cluster.bootstrap, topic)
    partition = TopicPartition(topic, 0)
    found = admin.elect_leaders(ElectionType.PREFERRED, [partition]).result(30)
    ((_, error),) = found.items()
    assert error is not None
    assert error.code() == 84, "the preferred replica leads already"


def test_topic_created_again_has_a_new_id(admin: AdminClient, cluster: KafkaServer, topic: str) -> None:
    first = make_topic(cluster.bootstrap, topic)
    send(cluster, topic, JUNE_2020_MS)
    result_of(admin.delete_topics([topic]))
    await_gone(cluster.bootstrap, topic)
    assert make_topic(cluster.bootstrap, topic) != first
    assert CLIENTS["confluent"]().ends(cluster.bootstrap, topic, 0) == (0, 0)
    found = result_of(admin.describe_topics(TopicCollection([topic])))
    assert isinstance(found.topic_id, Uuid)
