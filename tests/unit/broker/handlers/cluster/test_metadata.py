"""The Metadata handler over images made by hand."""

from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.nodes.images import broker, context_of, image_of, partition, uuid_of

from ottla.broker.handlers.cluster.metadata import handle, refuse
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import DIRECTORY_LOST, ZERO_UUID, Uuid
from ottla.metadata.image.image import MetadataImage
from ottla.wire import encode_bytes
from ottla.wire.api_table import ApiKey
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

NEWEST = 13


def ask(image: MetadataImage, request: MetadataRequest, version: int = NEWEST) -> MetadataResponse:
    settings = SimpleNamespace(current=SimpleNamespace(auto_create_topics_enable=False))
    response: Any = handle(context_of(image, ApiKey.METADATA, version, settings=settings), request)
    assert isinstance(response, MetadataResponse)
    encode_bytes(response, version)  # the response can be encoded in that version
    return response


def by_name(*names: str) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])


def test_all_topics_and_none() -> None:
    image = image_of([broker(1)], {"a": [partition(1)], "b": [partition(1), partition(1)]})
    everything = ask(image, MetadataRequest(topics=None))
    assert [(topic.name, len(topic.partitions)) for topic in everything.topics] == [("a", 1), ("b", 2)]
    assert [(node.node_id, node.host, node.port) for node in everything.brokers] == [(1, "host1", 9093)]
    assert (everything.cluster_id, everything.controller_id) == ("cluster", 1)
    assert ask(image, MetadataRequest(topics=[])).topics == []
    assert len(ask(image, MetadataRequest(topics=[]), version=0).topics) == 2, "in version 0 an empty list means all"


def test_unknown_and_invalid_names() -> None:
    image = image_of([broker(1)], {"a": [partition(1)]})
    topics = ask(image, by_name("a", "missing", "not/valid", "a", "__consumer_offsets")).topics
    assert [(topic.name, topic.error_code, topic.is_internal) for topic in topics] == [
        ("a", ErrorCode.NONE, False),
        ("missing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False),
        ("not/valid", ErrorCode.INVALID_TOPIC_EXCEPTION, False),
        ("__consumer_offsets", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True),
    ]


def test_topics_by_id() -> None:
    image = image_of([broker(1)], {"a": [partition(1)]})
    wanted = [MetadataRequestTopic(name=None, topic_id=uuid_of(500)), MetadataRequestTopic(name=None, topic_id=uuid_of(999))]
    topics = ask(image, MetadataRequest(topics=wanted)).topics
    assert [(topic.name, topic.topic_id, topic.error_code) for topic in topics] == [
        ("a", uuid_of(500), ErrorCode.NONE),
        (None, uuid_of(999), ErrorCode.UNKNOWN_TOPIC_ID),
    ]


@pytest.mark.parametrize(("name", "topic_id"), [(None, ZERO_UUID), ("a", uuid_of(500))])
def test_topic_ids_before_version_12_are_refused(name: str | None, topic_id: Any) -> None:
    image = image_of([broker(1)], {"a": [partition(1)]})
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name, topic_id=topic_id)])
    with pytest.raises(KafkaError) as refused:
        ask(image, request, version=11)
    assert refused.value.code == ErrorCode.INVALID_REQUEST
    response = refuse(context_of(image, ApiKey.METADATA, 11), request, refused.value)
    assert [topic.error_code for topic in response.topics] == [ErrorCode.INVALID_REQUEST]
    encode_bytes(response, 11)


def test_partitions_without_a_leader() -> None:
    image = image_of(
        [broker(1), broker(2, fenced=True), broker(3, listener="OTHER")],
        {"a": [partition(1, leader=-1), partition(2), partition(3), partition(4), partition(1, 2)]},
    )

    def told(version: int) -> list[tuple[int, int, list[int]]]:
        partitions = ask(image, by_name("a"), version).topics[0].partitions
        return [(each.error_code, each.leader_id, each.offline_replicas) for each in partitions]

    assert told(NEWEST) == [
        (ErrorCode.LEADER_NOT_AVAILABLE, -1, []),
        (ErrorCode.LEADER_NOT_AVAILABLE, -1, [2]),
        (ErrorCode.LISTENER_NOT_FOUND, -1, []),
        (ErrorCode.LEADER_NOT_AVAILABLE, -1, [4]),
        (ErrorCode.NONE, 1, [2]),
    ]
    assert told(5)[2][0] == ErrorCode.LEADER_NOT_AVAILABLE, "clients of version 5 do not know LISTENER_NOT_FOUND"


def test_a_replica_in_a_failed_directory_is_offline() -> None:
    here, gone = uuid_of(700), uuid_of(701)
    image = image_of(
        [broker(1, directories=(here,))],
        {"a": [partition(1, directories=(each,)) for each in (here, gone, DIRECTORY_LOST)]},
    )
    partitions = ask(image, by_name("a")).topics[0].partitions
    assert [each.offline_replicas for each in partitions] == [[], [1], [1]]


def test_version_0_lists_only_replicas_that_are_alive() -> None:
    image = image_of([broker(1)], {"a": [partition(1, 2)]})
    (told,) = ask(image, by_name("a"), version=0).topics[0].partitions
    assert (told.replica_nodes, told.isr_nodes, told.error_code) == ([1], [1], ErrorCode.REPLICA_NOT_AVAILABLE)


def test_everything_is_allowed_without_an_authorizer() -> None:
    image = image_of([broker(1)], {"a": [partition(1)]})
    request = by_name("a")
    request.include_topic_authorized_operations = request.include_cluster_authorized_operations = True
    response = ask(image, request, version=10)
    # The figures Apache Kafka 4.3.0 answers with when no authorizer is set.
    assert (response.topics[0].topic_authorized_operations, response.cluster_authorized_operations) == (3576, 8096)
    unknown = MetadataRequest(
        topics=[MetadataRequestTopic(name=None, topic_id=Uuid(b"x" * 16))], include_topic_authorized_operations=True
    )
    assert ask(image, unknown, version=12).topics[0].topic_authorized_operations == -(1 << 31)
