"""Metadata logs and snapshots that Apache Kafka wrote, replayed by Ottla: the image has what Apache's broker answers.

The server is formatted by Apache's tool, creates, alters and deletes topics, changes features and settings, is stopped cleanly
and started again, and is killed. It writes snapshots often, so that both the log and its snapshots are tested.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.cases.controller_refusals import topic
from tests.support.logs.metadata_files import log_of, records_of
from tests.support.peers.raw_client import RawClient
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.kafka_server import HANG_S

from ottla.ids import Uuid
from ottla.metadata.features import METADATA_VERSION, record_version
from ottla.metadata.image.delta import MetadataDelta
from ottla.metadata.image.image import MetadataImage, Provenance, ResourceType
from ottla.metadata.image.to_records import image_records
from ottla.wire.base import Message
from ottla.wire.log_records import encode_metadata_record
from ottla.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)
from ottla.wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest, ScramCredentialUpsertion
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.messages.create_topics import CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

pytestmark = pytest.mark.slow  # two starts of Apache Kafka; test_directories.py has the quick form

KEPT = ["plain", "configured", "grown"]
SET, REMOVE = 0, 1
_TOPIC, _BROKER = 2, 4


def change_things(client: RawClient) -> None:
    """Make every kind of change that one broker allows."""
    _ok(
        client.request(
            CreateTopicsRequest(topics=[topic("plain", 3), topic("grown", 1), topic("gone", 2)], timeout_ms=20_000), 7
        )
    )
    _ok(
        client.request(CreateTopicsRequest(topics=[topic("configured", 2, retention_ms="77", x="1")], timeout_ms=20_000), 7), 40
    )
    configured = topic("configured", 2, retention_ms="77", cleanup_policy="compact")
    _ok(client.request(CreateTopicsRequest(topics=[configured], timeout_ms=20_000), 7))
    grown = CreatePartitionsTopic(name="grown", count=4, assignments=None)
    _ok(client.request(CreatePartitionsRequest(topics=[grown], timeout_ms=20_000), 3))
    _alter(client, _TOPIC, "configured", ("segment.ms", SET, "100000"), ("retention.ms", REMOVE, None))
    _alter(client, _TOPIC, "gone", ("retention.ms", SET, "5"))
    _alter(client, _BROKER, "", ("log.retention.ms", SET, "9999999"))
    _alter(client, _BROKER, "1", ("log.cleaner.threads", SET, "2"))
    _ok(client.request(DeleteTopicsRequest(topics=[DeleteTopicState(name="gone")], timeout_ms=20_000), 6))
    feature = FeatureUpdateKey(feature="transaction.version", max_version_level=1, upgrade_type=2)
    _ok(client.request(UpdateFeaturesRequest(feature_updates=[feature], timeout_ms=20_000), 2))
    scram = ScramCredentialUpsertion(name="alice", mechanism=1, iterations=4096, salt=b"salt", salted_password=b"pass")
    _ok(client.request(AlterUserScramCredentialsRequest(upsertions=[scram]), 0))
    quota = AlterClientQuotasRequestEntryData(
        entity=[AlterClientQuotasRequestEntityData(entity_type="user", entity_name=None)],
        ops=[OpData(key="producer_byte_rate", value=1000.0)],
    )
    _ok(client.request(AlterClientQuotasRequest(entries=[quota]), 1))
    _await_producer_id(client)


def _await_producer_id(client: RawClient) -> None:
    """Wait for the first id: the broker answers "loading" until its controller has given it a block of ids."""
    deadline_s = time.monotonic() + HANG_S
    while client.request(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 4).error_code != 0:
        assert time.monotonic() < deadline_s, f"no producer id within {HANG_S} s"
        time.sleep(0.02)


def _alter(client: RawClient, kind: int, name: str, *changes: tuple[str, int, str | None]) -> None:
    configs = [AlterableConfig(name=each, config_operation=operation, value=value) for each, operation, value in changes]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    _ok(client.request(IncrementalAlterConfigsRequest(resources=[resource]), 1))


def _ok(response: Any, code: int = 0) -> None:
    results = [
        response,
        *getattr(response, "topics", ()),
        *getattr(response, "results", ()),
        *getattr(response, "responses", ()),
    ]
    found = [each for each in results if hasattr(each, "error_code")]
    assert all(each.error_code == (code if each is not response else 0) for each in found), response


class Answers:
    """The responses of a running broker about its cluster."""

    def __init__(self, client: RawClient) -> None:
        request = DescribeTopicPartitionsRequest(topics=[TopicRequest(name=name) for name in KEPT])
        self.topics = {
            each.name: (each.topic_id, {partition.partition_index: partition for partition in each.partitions})
            for each in client.request(request, 0).topics
        }
        resources = [(_TOPIC, name) for name in KEPT] + [(_BROKER, ""), (_BROKER, "1")]
        described = client.request(
            DescribeConfigsRequest(
                resources=[
                    DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
                    for kind, name in resources
                ]
            ),
            4,
        )
        own_source = {_TOPIC: 1, _BROKER: 2}
        self.configs = {
            (each.resource_type, each.resource_name): {
                config.name: config.value
                for config in each.configs
                if config.config_source == (own_source[each.resource_type] if each.resource_name else 3)
            }
            for each in described.results
        }


@pytest.fixture(scope="module")
def written(apache_kafka: ApacheKafka, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Answers]:
    """The metadata folder of a stopped server, and its earlier responses."""
    data = tmp_path_factory.mktemp("apache") / "data"
    properties = {"metadata.log.max.record.bytes.between.snapshots": 2000, "metadata.log.max.snapshot.interval.ms": 1000}
    with apache_kafka.start_server(properties, data_dir=data) as server, RawClient(server.port) as client:
        change_things(client)
    server = apache_kafka.start_server(properties, data_dir=data)
    try:
        with RawClient(server.port) as client:
            _ok(client.request(CreateTopicsRequest(topics=[topic("late", 1)], timeout_ms=20_000), 7))
            answers = Answers(client)
    finally:
        server.kill()  # a crash: no clean shutdown
    return data / "__cluster_metadata-0", answers


def image_of(log: Iterator[Message] | list[Message], base: MetadataImage | None = None) -> MetadataImage:
    delta = MetadataDelta(base or MetadataImage())
    delta.replay_all(log)
    return delta.finish(Provenance())


def snapshots_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.checkpoint") if int(path.name[:20]) > 0)


def test_image_has_what_the_broker_answered(written: tuple[Path, Answers]) -> None:
    folder, answers = written
    image = image_of(record.message for _, record in log_of(folder))
    assert set(image.topics.by_name) == {*KEPT, "late"}
    for name in KEPT:
        topic_id, partitions = answers.topics[name]
        found = image.topics.by_name[name]
        assert found.id == topic_id
        assert list(found.partitions) == sorted(partitions)
        for number, state in found.partitions.items():
            answer = partitions[number]
            assert (state.leader, state.leader_epoch) == (answer.leader_id, answer.leader_epoch)
            assert list(state.replicas) == answer.replica_nodes
            assert list(state.isr) == answer.isr_nodes
            assert list(state.elr) == answer.eligible_leader_replicas
            assert list(state.last_known_elr) == answer.last_known_elr
    for resource, settings in answers.configs.items():
        assert dict(image.configs.get(resource, {})) == settings, resource
    assert (_TOPIC, "gone") not in image.configs
    assert image.features[METADATA_VERSION] == 30
    assert image.features["transaction.version"] == 1
    assert image.features["share.version"] == 1
    assert image.next_producer_id == 1000
    assert sorted(type(record).__name__ for record in image.security.records()) == [
        "ClientQuotaRecord",
        "UserScramCredentialRecord",
    ]
    broker = image.cluster.brokers[1]
    assert not broker.fenced
    assert list(broker.endpoints) == ["PLAINTEXT"]
    assert len(broker.directories) == 1
    assert list(image.cluster.controllers) == [1]


def of_existing_topics(image: MetadataImage) -> MetadataImage:
    """Without settings of deleted topics: Apache keeps those of a topic created and deleted between two publications."""
    kept = {
        resource: settings
        for resource, settings in image.configs.items()
        if resource[0] != ResourceType.TOPIC or resource[1] in image.topics.by_name
    }
    return image._replace(configs=kept)


def test_snapshots_are_the_log_up_to_their_offset(written: tuple[Path, Answers]) -> None:
    folder, _ = written
    snapshots, log = snapshots_of(folder), log_of(folder)
    assert snapshots, "Apache has written no snapshot, so there is nothing to test"
    for path in snapshots:
        from_snapshot = of_existing_topics(image_of(record.message for _, record in records_of(path)))
        end_offset = int(path.name[:20])
        assert from_snapshot == image_of(record.message for offset, record in log if offset < end_offset), path.name
        rest = [record.message for offset, record in log if offset >= end_offset]
        assert image_of(rest, from_snapshot) == image_of(record.message for _, record in log), path.name


def test_records_are_written_in_the_versions_apache_writes(written: tuple[Path, Answers]) -> None:
    folder, _ = written
    for _, record in log_of(folder) + [entry for path in snapshots_of(folder) for entry in records_of(path)]:
        assert record_version(record.message, 30) == record.version, record


@pytest.mark.slow
def test_our_snapshot_is_apaches_image(apache_kafka: ApacheKafka, written: tuple[Path, Answers]) -> None:
    folder, _ = written
    log = [record.message for _, record in log_of(folder) if not type(record.message).__name__.endswith("TransactionRecord")]
    ours = list(image_records(image_of(log)))
    asked = f"same {_hexed(log)} / {_hexed(ours)}\n"
    assert apache_kafka.run_java("MetadataOracle.java", stdin=asked).stdout == "true\n"


def _hexed(log: list[Message]) -> str:
    return " ".join(encode_metadata_record(record, record_version(record, 30)).hex() for record in log)


def test_every_topic_has_one_id(written: tuple[Path, Answers]) -> None:
    folder, _ = written
    image = image_of(record.message for _, record in log_of(folder))
    ids: set[Uuid] = {each.id for each in image.topics.by_name.values()}
    assert ids == set(image.topics.by_id)
    assert len(ids) == len(image.topics.by_name)
