"""One suite for both faces, against Ottla and against Apache Kafka 4.3.0.

`admin` is a face of the client under one blocking interface, connected to `server`. A test of an API that the server does not
advertise is skipped by `needs`, so that what runs against Ottla grows with Ottla. Apache Kafka advertises them all. Both have
an authorizer with everybody as super user, and two log directories.
"""

import functools
import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.support.logs.batches import make_batch
from tests.support.nodes.fake_node import FakeNetwork, FakeNode
from tests.support.peers.ottla_clients import Faces
from tests.support.peers.raw_client import RawClient
from tests.support.servers.kafka_server import HANG_S, KafkaServer
from tests.support.servers.ottla_server import start_ottla

from ottla.client.world import real_client_world
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition
from ottla.wire import consumer_protocol
from ottla.wire.base import Message
from ottla.wire.messages.api_versions import ApiVersionsRequest
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

ACCESS_SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "delegation.token.secret.key": "secret",
}
WHERE = ("localhost", 9092)
_numbers = itertools.count()


OpenAdmin = Callable[..., Any]


@pytest.fixture(params=["sync", "aio"])
def open_admin(request: pytest.FixtureRequest) -> Iterator[OpenAdmin]:
    """Opens a client with one of the faces; all are closed after the test."""
    with Faces(request.param) as faces:
        yield functools.partial(faces.admin, default_api_timeout_ms=60_000)


@pytest.fixture(scope="session", params=["ottla", pytest.param("apache", marks=(pytest.mark.kafka, pytest.mark.slow))])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    """A server with two log directories, one start for the whole suite."""
    disks = tmp_path_factory.mktemp("disks")
    settings = {"log.dirs": f"{disks}/a,{disks}/b", "auto.create.topics.enable": "false"}
    if request.param == "ottla":
        with start_ottla(settings | ACCESS_SETTINGS) as started:
            yield started
    else:
        with request.getfixturevalue("apache_kafka").start_server(settings | ACCESS_SETTINGS) as started:
            yield started


@pytest.fixture(scope="session")
def served(server: KafkaServer) -> frozenset[int]:
    """The API keys that the server advertises."""
    client = RawClient.to(server.bootstrap)
    response = client.request(ApiVersionsRequest(client_software_name="tests", client_software_version="1"), 4)
    client.close()
    return frozenset(each.api_key for each in response.api_keys)


@pytest.fixture
def needs(served: frozenset[int]) -> Callable[..., None]:
    """Skips the test if the server does not serve an API."""

    def check(*keys: int) -> None:
        lacking = [key for key in keys if key not in served]
        if lacking:
            pytest.skip(f"the server does not serve the APIs {lacking} yet")

    return check


@pytest.fixture
def admin(open_admin: OpenAdmin, server: KafkaServer) -> Any:
    return open_admin(server.bootstrap)


@pytest.fixture
def name() -> str:
    """A name that no other test uses."""
    return f"thing-{next(_numbers)}"


Create = Callable[..., Any]


@pytest.fixture
def create(admin: Any) -> Create:
    """Creates topics and waits until the broker has heard of them: Apache Kafka answers before."""

    def make(topics: Any) -> Any:
        results = admin.create_topics(topics).raise_first()
        eventually(lambda: set(results) <= set(admin.list_topics()), True)
        eventually(lambda: [key for key in results if admin.describe_topics(results)[key].partitions[-1].leader is None], [])
        made = {
            TopicPartition(key, index)
            for key, topic in admin.describe_topics(results).items()
            for index in range(len(topic.partitions))
        }

        def opened() -> set[TopicPartition]:
            directories = admin.describe_log_dirs(wanted_partitions=sorted(made))[1]
            return {key for each in directories.values() for key in each.replicas}

        eventually(opened, made)  # a broker of Apache Kafka opens the logs after it has told of the leaders
        return results

    return make


def eventually(read: Callable[[], Any], expected: Any) -> None:
    """Read until the value is the expected one: brokers hear of changes a moment after they are acknowledged."""
    end_s = time.monotonic() + HANG_S
    while (found := read()) != expected:
        assert time.monotonic() < end_s, f"{found!r} does not become {expected!r}"


@pytest.fixture(name="eventually")
def eventually_fixture() -> Callable[[Callable[[], Any], Any], None]:
    return eventually


Produce = Callable[..., None]


@pytest.fixture
def produce(server: KafkaServer, admin: Any) -> Iterator[Produce]:
    """Writes one record per value to a partition."""
    client = RawClient.to(server.bootstrap)

    def write(topic: str, *values: bytes, partition: int = 0, timestamp: int = 1_700_000_000_000) -> None:
        data = PartitionProduceData(index=partition, records=make_batch(*values, timestamp=timestamp))
        topics = [TopicProduceData(name=topic, partition_data=[data])]
        request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=topics)
        eventually(lambda: client.request(request, 12).responses[0].partition_responses[0].error_code, 0)

    yield write
    client.close()


@pytest.fixture
def node() -> FakeNode:
    """A broker with scripted answers, for what no real server can be made to answer."""
    broker = MetadataResponseBroker(node_id=1, host=WHERE[0], port=WHERE[1])
    return FakeNode({MetadataRequest: lambda request, version: MetadataResponse(brokers=[broker], controller_id=1)})


@pytest.fixture
def scripted(open_admin: OpenAdmin, node: FakeNode) -> Any:
    """A client of the scripted broker."""
    world = real_client_world()._replace(network=FakeNetwork({WHERE: node}))
    return open_admin("localhost:9092", world=world)


class Members:
    """Members of groups, by raw requests over one connection: all groups are on the one broker."""

    def __init__(self, bootstrap: str) -> None:
        self._client = RawClient.to(bootstrap)
        # The first FindCoordinator creates the offsets topic.
        find = FindCoordinatorRequest(coordinator_keys=["any"])
        eventually(lambda: self._client.request(find, 4).coordinators[0].error_code, 0)

    def close(self) -> None:
        self._client.close()

    def join_classic(self, group: str, topic: str, instance: str | None = None) -> str:
        """Join as the only member of a classic group, and take partition 0 of `topic`; the member id."""
        subscription = consumer_protocol.write(ConsumerProtocolSubscription(topics=[topic]))
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=45_000,
            rebalance_timeout_ms=45_000,
            group_instance_id=instance,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=subscription)],
        )
        joined = self._until_done(request, 9)
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            request.member_id = joined.member_id
            joined = self._until_done(request, 9)
        assert joined.error_code == 0
        part = ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=[0])
        assignment = consumer_protocol.write(ConsumerProtocolAssignment(assigned_partitions=[part]))
        synced = self._client.request(
            SyncGroupRequest(
                group_id=group,
                generation_id=joined.generation_id,
                member_id=joined.member_id,
                group_instance_id=instance,
                protocol_type="consumer",
                protocol_name="range",
                assignments=[SyncGroupRequestAssignment(member_id=joined.member_id, assignment=assignment)],
            ),
            5,
        )
        assert synced.error_code == 0
        return str(joined.member_id)

    def join_consumer(self, group: str, topic: str, member_id: str) -> None:
        """Join a group of the new protocol."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id=member_id,
            rebalance_timeout_ms=45_000,
            subscribed_topic_names=[topic],
            topic_partitions=[],
        )
        assert self._until_done(request, 1).error_code == 0

    def _until_done(self, request: Message, version: int) -> Any:
        busy = {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR}
        end_s = time.monotonic() + HANG_S
        while (response := self._client.request(request, version)).error_code in busy:
            assert time.monotonic() < end_s, "the coordinator does not come"
        return response


@pytest.fixture
def members(server: KafkaServer) -> Iterator[Members]:
    joined = Members(server.bootstrap)
    yield joined
    joined.close()
