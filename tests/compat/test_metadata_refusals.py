"""The expected error codes of controller decisions are those of a real Apache Kafka broker, and Ottla's clients get them."""

from typing import Any

import pytest
from tests.support.cases.controller_refusals import CASES, CODES, PREPARED, Codes, codes_of, topic
from tests.support.nodes.controller_cluster import ControllerCluster
from tests.support.peers.raw_client import RawClient
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.kafka_server import KafkaServer
from tests.support.servers.ottla_server import start_ottla

from ottla.errors import KafkaError
from ottla.metadata.controller.topics import create_topics, delete_topics
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_topics import DeleteTopicsRequest
from ottla.wire.messages.metadata_records import ConfigRecord


def codes_found(server: KafkaServer) -> dict[str, Codes]:
    """The server's error codes for the whole script."""
    with RawClient(server.port) as client:
        made = client.request(create(*(topic(name, count) for name, count in PREPARED.items())), 7)
        ids = {each.name: each.topic_id for each in made.topics}
        names = {topic_id: name for name, topic_id in ids.items()}
        return {case.name: codes_of(client.request(case.make(ids), case.version), names) for case in CASES}


@pytest.mark.slow
def test_the_codes_are_those_of_apache(apache_kafka: ApacheKafka) -> None:
    with apache_kafka.start_server() as server:
        assert codes_found(server) == CODES


def test_ottla_answers_the_same() -> None:
    with start_ottla() as server:
        assert codes_found(server) == CODES


@pytest.mark.slow
def test_broker_settings_have_the_same_effect_as_in_apache(apache_kafka: ApacheKafka) -> None:
    """Impossible defaults, deletion switched off, and the sources of a new topic's settings."""
    properties = {
        "num.partitions": 3,
        "default.replication.factor": 2,
        "delete.topic.enable": "false",
        "log.retention.minutes": 7,
        "log.segment.bytes": 2_000_000,
        "min.insync.replicas": 1,
    }
    configured = topic("configured", -1, 1, retention_bytes="77", cleanup_policy="compact, delete")
    with apache_kafka.start_server(properties) as server, RawClient(server.port) as client:
        theirs: dict[str, Any] = {"create": client.request(create(configured, topic("too-few", -1, -1)), 7)}
        for version in (1, 2, 3, 5):
            theirs[f"delete {version}"] = client.request(delete("configured"), version)

    cluster = ControllerCluster(
        num_partitions=3,
        default_replication_factor=2,
        delete_topic_enable=False,
        static={name: str(value) for name, value in properties.items()},
    )
    cluster.append([ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="1")])
    cluster.add_broker(1)
    ours = create_topics(cluster.state, create(configured, topic("too-few", -1, -1)), 0).response
    assert codes_of(ours, {}) == codes_of(theirs["create"], {})
    assert _summary(ours) == _summary(theirs["create"])
    for version in (1, 2, 3, 5):
        with pytest.raises(KafkaError) as refusal:
            delete_topics(cluster.state, delete("configured"), 0, version)
        assert codes_of(theirs[f"delete {version}"], {}) == {"configured": refusal.value.code}


def create(*topics: CreatableTopic) -> CreateTopicsRequest:
    return CreateTopicsRequest(topics=list(topics), timeout_ms=20_000)


def delete(*names: str) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topic_names=list(names), timeout_ms=20_000)


def _summary(response: Any) -> dict[str, Any]:
    """The response for each topic, without ids and messages."""
    return {
        each.name: (
            each.num_partitions,
            each.replication_factor,
            {(config.name, config.value, config.config_source, config.read_only) for config in each.configs or ()},
        )
        for each in response.topics
    }
