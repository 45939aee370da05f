"""kafka-python's admin client, which speaks more APIs than the others: features, quorum, log directories, producers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic, OffsetSpec, UpdateFeatureType
from kafka.errors import (
    InvalidConfigurationError,
    InvalidPartitionsError,
    InvalidReplicationFactorError,
    KafkaError,
    OffsetOutOfRangeError,
    TopicAlreadyExistsError,
)
from tests.support.peers.clients import CLIENTS, ConsumerOptions, Outgoing, ProducerOptions, Receipt
from tests.support.peers.topics import await_gone, await_leaders, await_true, describe_topic, make_topic
from tests.support.servers.kafka_server import KafkaServer

JUNE_2020_MS = 1_592_000_000_000


@pytest.fixture
def admin(cluster: KafkaServer) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    yield client
    client.close()


def send(cluster: KafkaServer, topic: str, count: int, partition: int = 0, idempotent: bool = False) -> None:
    sent = [Outgoing(b"v" * 100, partition=partition, timestamp_ms=JUNE_2020_MS + number) for number in range(count)]
    outcomes = CLIENTS["confluent"]().produce(cluster.bootstrap, topic, sent, ProducerOptions(idempotent=idempotent))
    assert all(isinstance(outcome, Receipt) for outcome in outcomes)


def log_dirs(cluster: KafkaServer) -> list[str]:
    return str(cluster.properties["log.dirs"]).split(",")


def log_dirs_of(admin: KafkaAdminClient, topic: str) -> dict[str, dict[str, Any]]:
    """The broker's log directories that hold partitions of the topic: path → its description of them."""
    (broker,) = admin.describe_log_dirs()
    found: dict[str, dict[str, Any]] = {}
    for folder in broker["log_dirs"]:
        assert folder["error_code"] == 0
        assert folder["total_bytes"] > folder["usable_bytes"] > 0
        for each in folder["topics"]:
            if each["name"] == topic:
                found[folder["log_dir"]] = {str(part["partition_index"]): part for part in each["partitions"]}
    return found


def test_create_list_describe_delete(admin: KafkaAdminClient, cluster: KafkaServer, topic: str) -> None:
    (made,) = admin.create_topics([NewTopic(topic, 3, 1, topic_configs={"retention.bytes": "4000000"})])["topics"]
    assert (made["error_code"], made["num_partitions"], made["replication_factor"]) == (0, 3, 1)
    assert made["configs"]["retention.bytes"] == {
        "value": "4000000",
        "read_only": False,
        "config_source": "DYNAMIC_TOPIC_CONFIG",
        "is_sensitive": False,
    }
    await_leaders(cluster.bootstrap, topic, 3)
    assert topic in admin.list_topics()
    (described,) = admin.describe_topics([topic])
    assert described["topic_id"] == made["topic_id"]
    assert [part["leader_id"] for part in described["partitions"]] == [1, 1, 1]
    (page,) = admin.describe_topic_partitions([topic])["topics"]
    assert page["topic_id"] == UUID(made["topic_id"])
    assert [part["partition_index"] for part in page["partitions"]] == [0, 1, 2]
    (deleted,) = admin.delete_topics([topic])["topics"]
    assert deleted["error_code"] == 0
    await_gone(cluster.bootstrap, topic)


def test_delete_by_id(admin: KafkaAdminClient, cluster: KafkaServer, topic: str) -> None:
    topic_id = UUID(bytes=make_topic(cluster.bootstrap, topic))
    (deleted,) = admin.delete_topics([topic_id])["topics"]
    assert (deleted["name"], deleted["error_code"]) == (topic, 0)
    await_gone(cluster.bootstrap, topic)
    (again,) = admin.delete_topics([topic_id], raise_errors=False)["topics"]
    assert again["error_code"] == 100


def test_deletion_removes_the_folders(admin: KafkaAdminClient, cluster: KafkaServer, topic: str) -> None:
    make_topic(cluster.bootstrap, topic, 2)
    send(cluster, topic, 100)

    def left() -> list[str]:
        return [path.name for folder in log_dirs(cluster) for path in Path(folder).glob(f"{topic}*")]

    assert sorted(left()) == [f"{topic}-0", f"{topic}-1"]
    admin.delete_topics([topic])
    await_true(lambda: not left(), f"the folders of {topic} to go")


def test_pages_of_partitions(admin: KafkaAdminClient, cluster: KafkaServer, topic: str) -> None:
    make_topic(cluster.bootstrap, topic, 5)
    first = admin.describe_topic_partitions([topic], response_partition_limit=3)
    assert [part["partition_index"] for part in first["topics"][0]["partitions"]] == [0, 1, 2]
    cursor = first["next_cursor"]
    assert (cursor["topic_name"], cursor["partition_index"]) == (topic, 3)
    rest = admin.describe_topic_partitions([topic], response_partition_limit=3, cursor=cursor)
    assert [part["partition_index"] for part in rest["topics"][0]["partitions"]] == [3, 4]
    assert rest["next_cursor"] is None


def test_refusals_raise_the_matching_error_class(admin: KafkaAdminClient, cluster: KafkaServer, topic: str) -> None:
    make_topic(cluster.bootstrap, topic)
    with pytest.raises(TopicAlreadyExistsError):
        admin.create_topics([NewTopic(topic, 1, 1)])
    with pytest.raises(InvalidReplicationFactorError):
        admin.create_topics([NewTopic(f"{topic}-2", 1, 3)])
    with pytest.raises(InvalidPartitionsError):
        admin.create_partitions({topic: NewPartitions(1)})
    with pytest.raises(InvalidConfigurationError):
        admin.create_topics([NewTopic(f"{topic}-2", 1, 1, topic_configs={"segment.bytes": "-3"})])


def test_create_partitions(admin: KafkaAdminClient, cluster: KafkaServer, topic: str) -> None:
    make_topic(cluster.bootstrap, topic)
    admin.create_partitions({topic: NewPartitions(3)}, validate_only=True)
    assert len(describe_topic(cluster.bootstrap, topic).partitions) == 1
    admin.create_partitions({topic: NewPartitions(3, new_assignments=[[1], [1]])})
    await_leaders(cluster.bootstrap, topic, 3)


def test_configs(admin: KafkaAdminClient, cluster: KafkaServer, topic: str) -> None:
    make_topic(cluster.bootstrap, topic, configs={"max.message.bytes": 5000})
    resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs={"retention.ms": "60000"})
    admin.alter_configs([resource], incremental=True)
    asked = [ConfigResource(ConfigResourceType.TOPIC, topic)]
    await_true(lambda: "retention.ms" in admin.describe_configs(asked)["topic"][topic], "the setting to be there")
    modified = admin.describe_configs(asked)["topic"][topic]
    assert {name: entry["value"] for name, entry in modified.items() if entry["config_source"] == "DYNAMIC_TOPIC_CONFIG"} == {
        "max.message.bytes": "5000",
        "retention.ms": "60000",
    }
    every = admin.describe_configs(asked, include_synonyms=True, config_filter="all")["topic"][topic]
    assert every["retention.ms"]["config_type"] == "LONG"
    assert every["retention.ms"]["synonyms"][0] == {"name": "retention.ms", "value": "60000", "source": "DYNAMIC_TOPIC_CONFIG"}
    assert every["cleanup.policy"]["synonyms"][-1]["name"] == "log.cleanup.policy"
    admin.reset_configs([ConfigResource(ConfigResourceType.TOPIC, topic, configs=["retention.ms"])])
    dynamic = "DYNAMIC_TOPIC_CONFIG"
    await_true(
        lambda: admin.describe_configs(asked, config_filter="all")["topic"][topic]["retention.ms"]["config_source"] != dynamic,
        "the setting to be gone",
    )


def test_old_alter_configs(admin: KafkaAdminClient, cluster: KafkaServer, topic: str) -> None:
    make_topic(cluster.bootstrap, topic, configs={"max.message.bytes": 5000})
    resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs={"retention.ms": "60000"})
    admin.alter_configs([resource], incremental=False)
    asked = [ConfigResource(ConfigResourceType.TOPIC, topic)]

    def mine() -> set[str]:
        entries = admin.describe_configs(asked, config_filter="all")["topic"][topic]
        return {name for name, entry in entries.items() if entry["config_source"] == "DYNAMIC_TOPIC_CONFIG"}

    await_true(lambda: "retention.ms" in mine(), "the setting to be there")


def test_cluster_features_quorum(admin: KafkaAdminClient, cluster: KafkaServer) -> None:
    found = admin.describe_cluster()
    assert found["cluster_id"] == "b3R0bGEtdGVzdHMtMDAwMQ"
    assert found["brokers"] == [
        {"broker_id": 1, "host": "127.0.0.1", "port": cluster.port, "rack": None, "is_fenced": False},
    ]
    features = admin.describe_features()
    assert features["metadata.version"]["supported"] == (7, 30)
    assert features["metadata.version"]["finalized"] == (30, 30)
    assert features["kraft.version"]["finalized"] == (1, 1)
    assert features["transaction.version"]["finalized"][1] <= features["transaction.version"]["supported"][1]
    quorum = admin.describe_metadata_quorum()
    (state,) = quorum["topics"][0]["partitions"]
    assert quorum["topics"][0]["topic_name"] == "__cluster_metadata"
    assert state["leader_id"] == 1
    assert state["high_watermark"] > 0
    assert [voter["replica_id"] for voter in state["current_voters"]] == [1]
    (node,) = quorum["nodes"]
    assert node["listeners"] == [{"name": "CONTROLLER", "host": "127.0.0.1", "port": cluster.controller_port}]


def test_config_resources(admin: KafkaAdminClient, cluster: KafkaServer, topic: str) -> None:
    make_topic(cluster.bootstrap, topic)
    found = admin.list_config_resources()
    assert topic in found["topic"]
    assert found["broker"] == ["1"]


def test_log_directories(admin: KafkaAdminClient, cluster: KafkaServer, topic: str) -> None:
    make_topic(cluster.bootstrap, topic, 4)
    send(cluster, topic, 50, partition=1)
    found = log_dirs_of(admin, topic)
    assert set(found) <= set(log_dirs(cluster))
    parts = {number: part for folder in found.values() for number, part in folder.items()}
    assert sorted(parts) == ["0", "1", "2", "3"]
    assert parts["1"]["partition_size"] > 5000
    assert parts["0"]["partition_size"] == 0
    assert {(part["offset_lag"], part["is_future_key"]) for part in parts.values()} == {(0, False)}


def test_a_partition_moves_to_another_directory(admin: KafkaAdminClient, cluster: KafkaServer, topic: str) -> None:
    make_topic(cluster.bootstrap, topic)
    send(cluster, topic, 3000)
    (old,) = log_dirs_of(admin, topic)
    (new,) = set(log_dirs(cluster)) - {old}
    admin.alter_replica_log_dirs({(topic, 0, 1): new})
    await_true(lambda: set(log_dirs_of(admin, topic)) == {new}, f"{topic} to move to {new}")
    rows = CLIENTS["confluent"]().consume(cluster.bootstrap, topic, [0], -2, 3000, ConsumerOptions())
    assert [row.offset for row in rows] == list(range(3000))
    send(cluster, topic, 1)
    assert (Path(new) / f"{topic}-0").is_dir()
    await_true(lambda: not list(Path(old).glob(f"{topic}-0*")), f"the old folder in {old} to go")


def test_offsets_and_delete_records(admin: KafkaAdminClient, cluster: KafkaServer, topic: str) -> None:
    make_topic(cluster.bootstrap, topic)
    send(cluster, topic, 10)
    partition = TopicPartition(topic, 0)

    def offset(spec: Any) -> tuple[int, int]:
        found = admin.list_partition_offsets({partition: spec})[partition]
        return found.offset, found.timestamp

    assert offset(OffsetSpec.EARLIEST) == (0, -1)
    assert offset(OffsetSpec.LATEST) == (10, -1)
    assert offset(OffsetSpec.MAX_TIMESTAMP) == (9, JUNE_2020_MS + 9)
    assert offset(JUNE_2020_MS + 4) == (4, JUNE_2020_MS + 4)
    assert admin.delete_records({partition: 6})[partition]["low_watermark"] == 6
    assert offset(OffsetSpec.EARLIEST) == (6, -1)
    assert offset(OffsetSpec.EARLIEST_LOCAL)[0] == 6
    with pytest.raises(OffsetOutOfRangeError):
        admin.delete_records({partition: 20})


def test_elect_leaders(admin: KafkaAdminClient, cluster: KafkaServer, topic: str) -> None:
    make_topic(cluster.bootstrap, topic, 2)
    response = admin.elect_leaders(0, {topic: [0, 1]}, raise_errors=False)
    (result,) = response.replica_election_results
    assert sorted((part.partition_id, part.error_code) for part in result.partition_result) == [(0, 84), (1, 84)]
    response = admin.elect_leaders(0, {topic: [7]}, raise_errors=False)
    assert response.replica_election_results[0].partition_result[0].error_code == 3


def test_producers_of_a_partition(admin: KafkaAdminClient, cluster: KafkaServer, topic: str) -> None:
    make_topic(cluster.bootstrap, topic)
    send(cluster, topic, 5)
    partition = TopicPartition(topic, 0)
    assert admin.describe_producers([partition])[partition].active_producers == []
    send(cluster, topic, 5, idempotent=True)
    (producer,) = admin.describe_producers([partition])[partition].active_producers
    assert producer.producer_id >= 0
    assert producer.producer_epoch == 0
    assert producer.last_sequence == 4
    assert producer.last_timestamp == JUNE_2020_MS + 4


def test_impossible_feature_updates_are_refused(admin: KafkaAdminClient) -> None:
    with pytest.raises(KafkaError):
        admin.update_features({"metadata.version": (UpdateFeatureType.UPGRADE, 31)})
    with pytest.raises(KafkaError):
        admin.update_features({"no.such.feature": (UpdateFeatureType.UPGRADE, 1)})
