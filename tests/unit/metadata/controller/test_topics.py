"""The records of topics that are created, grown and deleted. The refusals are in test_refusals.py."""

import pytest
from tests.support.cases.controller_refusals import topic
from tests.support.nodes.controller_cluster import ControllerCluster, directory_of

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED
from ottla.metadata.controller.topics import create_partitions, create_topics, delete_topics
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.messages.create_topics import CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.metadata_records import ConfigRecord, PartitionRecord, TopicRecord


def two_brokers(**options: int) -> ControllerCluster:
    cluster = ControllerCluster(**options)
    cluster.add_broker(1)
    cluster.add_broker(2, log_dirs=[directory_of(2), directory_of(2, 1)])
    return cluster


def test_create_topics_writes_topic_settings_and_partitions_in_order() -> None:
    cluster = two_brokers()
    decision = create_topics(cluster.state, CreateTopicsRequest(topics=[topic("t", 2, 2, retention_ms="5")]), 0)
    assert [type(record) for record in decision.records] == [TopicRecord, ConfigRecord, PartitionRecord, PartitionRecord]
    (result,) = decision.response.topics
    assert (result.name, result.error_code, result.error_message) == ("t", 0, None)
    assert (result.num_partitions, result.replication_factor) == (2, 2)
    found = {config.name: (config.value, config.config_source) for config in result.configs or ()}
    assert found["retention.ms"] == ("5", 1)
    assert found["segment.bytes"] == ("1073741824", 5)
    cluster.apply(decision)
    assert cluster.topic("t").id == result.topic_id
    assert cluster.state.image.configs == {(2, "t"): {"retention.ms": "5"}}


def test_a_new_replica_gets_the_only_directory_or_an_unassigned_one() -> None:
    cluster = two_brokers()
    cluster.create_topic("t", assignments=[[1, 2]])
    assert cluster.partition("t").directories == (directory_of(1), DIRECTORY_UNASSIGNED)


def test_metadata_versions_before_directories_write_none() -> None:
    cluster = ControllerCluster(16)
    cluster.add_broker(1, log_dirs=[])
    cluster.create_topic("t", partitions=1, replication_factor=1)
    assert cluster.partition("t").directories == (DIRECTORY_MIGRATING,)
    assert not cluster.state.image.cluster.brokers[1].directories


def test_defaults_fill_in_for_minus_one() -> None:
    cluster = two_brokers(num_partitions=3, default_replication_factor=2)
    made = cluster.create_topic("t")
    assert len(made.partitions) == 3
    assert all(sorted(each.replicas) == [1, 2] for each in made.partitions.values())


def test_replicas_on_fenced_brokers_start_out_of_sync() -> None:
    cluster = two_brokers()
    cluster.heartbeat(1, want_fence=True)
    cluster.create_topic("t", assignments=[[1, 2]])
    partition = cluster.partition("t")
    assert (partition.replicas, partition.isr, partition.leader) == ((1, 2), (2,), 2)
    cluster.heartbeat(2, want_fence=True)
    refused = create_topics(cluster.state, CreateTopicsRequest(topics=[topic("u", -1, -1, assign=[(0, [1, 2])])]), 0)
    assert refused.response.topics[0].error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    refused = create_topics(cluster.state, CreateTopicsRequest(topics=[topic("u", 1, 1)]), 0)
    assert refused.response.topics[0].error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert not refused.records


def test_a_broker_that_is_shutting_down_gets_no_new_replicas() -> None:
    cluster = two_brokers()
    cluster.create_topic("busy", assignments=[[1, 2]])
    cluster.heartbeat(1, want_shut_down=True)
    for number in range(8):
        assert cluster.create_topic(f"t{number}", 1, 1).partitions[0].replicas == (2,)


def test_a_broker_whose_directories_are_all_cordoned_gets_no_new_replicas() -> None:
    cluster = two_brokers()
    cluster.heartbeat(1, cordoned_log_dirs=[directory_of(1)])
    for number in range(8):
        assert cluster.create_topic(f"t{number}", 1, 1).partitions[0].replicas == (2,)
    assert cluster.create_topic("assigned", assignments=[[1, 2]]).partitions[0].isr == (1, 2), "unless it is assigned"
    refused = create_topics(cluster.state, CreateTopicsRequest(topics=[topic("u", 1, 2)]), 0)
    assert refused.response.topics[0].error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    cluster.heartbeat(1, cordoned_log_dirs=[])
    assert cluster.create_topic("both", 1, 2).partitions[0].isr in ((1, 2), (2, 1))


def test_settings_come_from_the_first_layer_that_has_them() -> None:
    cluster = ControllerCluster(static={"log.retention.hours": "2", "log.segment.bytes": "3000000", "min.insync.replicas": "1"})
    cluster.add_broker(1)
    cluster.append(
        [
            ConfigRecord(resource_type=4, resource_name="", name="log.segment.bytes", value="4000000"),
            ConfigRecord(resource_type=4, resource_name="", name="compression.type", value="lz4"),
            ConfigRecord(resource_type=4, resource_name="1", name="compression.type", value="zstd"),
            ConfigRecord(resource_type=4, resource_name="9", name="log.cleanup.policy", value="compact"),
        ]
    )
    decision = create_topics(cluster.state, CreateTopicsRequest(topics=[topic("t", 1, 1, cleanup_policy="delete")]), 0)
    found = {config.name: (config.value, config.config_source) for config in decision.response.topics[0].configs or ()}
    assert found["cleanup.policy"] == ("delete", 1)
    assert found["compression.type"] == ("zstd", 2)
    assert found["segment.bytes"] == ("4000000", 3)
    assert found["retention.ms"] == ("7200000", 4)
    assert found["flush.messages"] == (str(2**63 - 1), 5)


def test_create_partitions_keeps_the_existing_partitions() -> None:
    cluster = two_brokers()
    before = cluster.create_topic("t", 2, 2)
    request = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="t", count=5, assignments=None)])
    cluster.apply(create_partitions(cluster.state, request, 0))
    after = cluster.topic("t")
    assert list(after.partitions) == [0, 1, 2, 3, 4]
    assert [after.partitions[number] for number in (0, 1)] == [before.partitions[number] for number in (0, 1)]
    assert {len(each.replicas) for each in after.partitions.values()} == {2}


def test_growth_past_the_record_limit_is_refused_as_a_whole() -> None:
    cluster = two_brokers()
    cluster.create_topic("t", 1, 1)
    cluster.create_topic("u", 1, 1)
    growth = [CreatePartitionsTopic(name=name, count=6001, assignments=None) for name in ("t", "u")]
    with pytest.raises(KafkaError) as error:
        create_partitions(cluster.state, CreatePartitionsRequest(topics=growth), 0)
    assert error.value.code == ErrorCode.POLICY_VIOLATION


def test_a_deleted_topic_is_gone_with_its_settings() -> None:
    cluster = two_brokers()
    cluster.create_topic("t", 1, 1, configs={"retention.ms": "5"})
    (result,) = cluster.apply(delete_topics(cluster.state, DeleteTopicsRequest(topic_names=["t"]), 0)).responses
    assert result.error_code == 0
    assert not cluster.state.image.topics.by_name
    assert not cluster.state.image.configs
    cluster.create_topic("t", 1, 1)
    assert not cluster.state.image.configs
