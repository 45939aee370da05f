"""Single requests to the right node: retries until the deadline, routing by leader and coordinator, errors per item."""

import asyncio
import builtins
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from socket import gaierror
from typing import Any, TypeVar

import pytest
from tests.support.nodes.fake_node import HANG_UP, FakeNetwork, FakeNode, all_versions
from tests.unit.client.test_connections import BOOTSTRAP, Settings

from ottla.client.cluster import Cluster, Waits, open_cluster
from ottla.client.connections import ConnectionPool
from ottla.client.world import ClientWorld, real_client_world
from ottla.client_core.coordinators import CoordinatorKind
from ottla.client_core.machine import ANY_NODE, CONTROLLER
from ottla.client_core.metadata import Metadata
from ottla.config.client import admin_settings
from ottla.env.real.clock import RealClock
from ottla.env.real.threads import RealThreads
from ottla.errors import (
    BrokerNotAvailableError,
    KafkaError,
    NetworkError,
    TimeoutError,
    UnknownTopicOrPartitionError,
    UnreachableError,
    exception_of,
)
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition
from ottla.link import LinkOptions
from ottla.sim.world import SeededRandomness
from ottla.wire.api_table import ApiKey
from ottla.wire.base import Message
from ottla.wire.messages.api_versions import ApiVersion, ApiVersionsRequest
from ottla.wire.messages.describe_cluster import DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse
from ottla.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from ottla.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

T = TypeVar("T")
ONE, TWO = ("one", 9092), ("two", 9092)


@dataclass
class ApiSettings(Settings):
    default_api_timeout_ms: int = 2_000
    request_timeout_ms: int = 1_000
    retry_backoff_ms: int = 5


def metadata(request: MetadataRequest, version: int) -> MetadataResponse:
    brokers = [MetadataResponseBroker(node_id=id, host=host, port=port) for id, (host, port) in ((1, ONE), (2, TWO))]
    partitions = [
        MetadataResponsePartition(partition_index=0, leader_id=1),
        MetadataResponsePartition(partition_index=1, leader_id=2),
        MetadataResponsePartition(partition_index=2, leader_id=-1),
    ]
    topics = [
        MetadataResponseTopic(name="orders", partitions=partitions)
        if each.name == "orders"
        else MetadataResponseTopic(name=each.name, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        for each in request.topics or []
    ]
    return MetadataResponse(brokers=brokers, topics=topics, controller_id=2)


def ask_cluster(
    script: Callable[[Cluster], Awaitable[T]],
    handlers: Mapping[type[Message], Callable[[Any, int], object]],
    *,
    served: list[ApiVersion] | None = None,
    controllers: bool = False,
    timeout_ms: int = 2_000,
    waits_for_brokers: bool = True,
    nodes: Mapping[tuple[str, int], Any] | None = None,
    bootstrap: Sequence[tuple[str, int]] = (BOOTSTRAP,),
) -> T:
    node = FakeNode({MetadataRequest: metadata, **handlers}, served)

    async def body() -> T:
        randomness = SeededRandomness(Random(1))
        settings = ApiSettings(default_api_timeout_ms=timeout_ms)
        network = FakeNetwork({BOOTSTRAP: node, ONE: node, TWO: node} if nodes is None else dict(nodes))
        world = ClientWorld(RealClock(), network, randomness, RealThreads())
        known = Metadata(settings, randomness.below)
        options = LinkOptions(request_timeout_ms=settings.request_timeout_ms)
        pool = ConnectionPool(world, settings, bootstrap, options, known)
        cluster = Cluster(world, settings, pool, known, controllers=controllers, waits_for_brokers=waits_for_brokers)
        try:
            return await script(cluster)
        finally:
            cluster.close()

    return asyncio.run(body())


def test_a_lost_connection_is_followed_by_another_attempt() -> None:
    replies: list[object] = [HANG_UP, HANG_UP, HeartbeatResponse(throttle_time_ms=7)]
    answer = ask_cluster(lambda cluster: cluster.ask_any(HeartbeatRequest()), {HeartbeatRequest: lambda *_: replies.pop(0)})
    assert answer.throttle_time_ms == 7


def test_request_without_an_answer_is_followed_by_another_attempt() -> None:
    """A node that hangs costs request.timeout.ms, not the whole call."""
    replies: list[object] = [None, HeartbeatResponse(throttle_time_ms=7)]

    async def script(cluster: Cluster) -> Any:
        return await cluster.retrying(partial(cluster.once, ANY_NODE, HeartbeatRequest(), timeout_ms=50))

    assert ask_cluster(script, {HeartbeatRequest: lambda *_: replies.pop(0)}, timeout_ms=60_000).throttle_time_ms == 7


def test_attempts_end_with_the_deadline() -> None:
    with pytest.raises(TimeoutError, match=r"default\.api\.timeout\.ms"):
        ask_cluster(lambda cluster: cluster.ask_any(HeartbeatRequest()), {HeartbeatRequest: lambda *_: None}, timeout_ms=100)


def test_a_topic_that_does_not_exist_is_reported_at_once() -> None:
    with pytest.raises(UnknownTopicOrPartitionError, match="topic missing does not exist"):
        ask_cluster(lambda cluster: cluster.topic("missing"), {})


def test_a_request_for_the_controller_goes_to_it() -> None:
    async def script(cluster: Cluster) -> int:
        replies = iter([ErrorCode.NOT_CONTROLLER, 0])
        await cluster.ask_controller(HeartbeatRequest(), lambda response: next(replies))
        return cluster.known.controller_id

    assert ask_cluster(script, {HeartbeatRequest: lambda *_: HeartbeatResponse()}) == 2


@pytest.mark.parametrize("asked", ["controller", "broker"])
def test_a_node_that_is_gone_is_looked_up_again(asked: str) -> None:
    seen = 0

    def moving(request: MetadataRequest, version: int) -> MetadataResponse:
        """Node 2, the controller, is at an address where nothing listens; later another is the controller, and it has moved."""
        nonlocal seen
        seen += 1
        found = metadata(request, version)
        if seen > 1:
            found.controller_id = 1
            found.brokers[1].host = "bootstrap"
        return found

    async def script(cluster: Cluster) -> int:
        await cluster.metadata([])
        if asked == "controller":
            await cluster.ask_controller(HeartbeatRequest())
        else:
            await cluster.ask_broker(2, HeartbeatRequest())
        return seen

    node = FakeNode({MetadataRequest: moving, HeartbeatRequest: lambda *_: HeartbeatResponse()})
    nodes = {BOOTSTRAP: node, ("bootstrap", 9092): node, ONE: node, TWO: ConnectionRefusedError()}
    assert ask_cluster(script, {}, nodes=nodes) == 2


def test_a_controller_that_hangs_is_looked_up_again() -> None:
    controllers = iter([2, 1])
    hanging = FakeNode({HeartbeatRequest: lambda *_: None})

    def moving(request: MetadataRequest, version: int) -> MetadataResponse:
        found = metadata(request, version)
        found.controller_id = next(controllers)
        return found

    node = FakeNode({MetadataRequest: moving, HeartbeatRequest: lambda *_: HeartbeatResponse(throttle_time_ms=7)})
    nodes = {BOOTSTRAP: node, ONE: node, TWO: hanging}
    answer = ask_cluster(lambda cluster: cluster.ask_controller(HeartbeatRequest()), {}, nodes=nodes, timeout_ms=10_000)
    assert answer.throttle_time_ms == 7
    assert len(hanging.asked_for(HeartbeatRequest)) == 1


def test_person_is_told_at_once_that_the_only_node_is_gone() -> None:
    node = FakeNode({MetadataRequest: metadata, HeartbeatRequest: lambda *_: HeartbeatResponse()})

    async def script(cluster: Cluster) -> None:
        await cluster.ask_controller(HeartbeatRequest())
        cluster.world.network.nodes.clear()  # type: ignore[attr-defined]
        node.handlers = dict.fromkeys(node.handlers, lambda *_: HANG_UP)
        await cluster.ask_controller(HeartbeatRequest())

    with pytest.raises(UnreachableError):
        ask_cluster(script, {}, nodes={BOOTSTRAP: node, TWO: node}, waits_for_brokers=False, timeout_ms=60_000)


def test_person_is_told_at_once_that_there_is_no_such_broker() -> None:
    async def script(cluster: Cluster) -> None:
        await cluster.ask_broker(7, HeartbeatRequest())

    with pytest.raises(BrokerNotAvailableError, match=r"broker 7 is not in the cluster, or is down: .* up are 1, 2"):
        ask_cluster(script, {}, waits_for_brokers=False, timeout_ms=60_000)
    # Others wait until their time is over. Which error comes then depends on what the last attempt was about.
    with pytest.raises((TimeoutError, NetworkError)) as late:
        ask_cluster(script, {}, timeout_ms=1_000)
    assert "advertised.listeners" not in str(late.value)


def test_person_needs_one_connection_to_the_node_of_the_bootstrap_address() -> None:
    def metadata_here(request: MetadataRequest, version: int) -> MetadataResponse:
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=2, host=BOOTSTRAP[0], port=BOOTSTRAP[1])], controller_id=2
        )

    connections = []
    for waits in (False, True):
        node = FakeNode({MetadataRequest: metadata_here, HeartbeatRequest: lambda *_: HeartbeatResponse()})
        ask_cluster(
            lambda cluster: cluster.ask_controller(HeartbeatRequest()), {}, nodes={BOOTSTRAP: node}, waits_for_brokers=waits
        )
        connections.append(node.connections)
    assert connections == [1, 2]


def test_partitions_are_asked_for_at_their_leaders() -> None:
    asked: dict[int, list[TopicPartition]] = {}

    async def ask(node_id: int, partitions: list[TopicPartition]) -> dict[TopicPartition, str | KafkaError]:
        asked[node_id] = partitions
        return dict.fromkeys(partitions, "done")

    async def script(cluster: Cluster) -> dict[TopicPartition, str | KafkaError]:
        wanted = [TopicPartition("orders", 0), TopicPartition("orders", 1), TopicPartition("orders", 9)]
        return await cluster.by_leader([*wanted, TopicPartition("missing", 0)], ask)

    done = ask_cluster(script, {})
    assert asked == {1: [("orders", 0)], 2: [("orders", 1)]}
    assert done["orders", 0] == "done"  # type: ignore[index]
    assert "has no partition 9" in str(done["orders", 9])  # type: ignore[index]
    assert isinstance(done["missing", 0], UnknownTopicOrPartitionError)  # type: ignore[index]


def test_a_partition_without_a_leader_is_retried_until_the_deadline() -> None:
    async def ask(node_id: int, partitions: list[TopicPartition]) -> dict[TopicPartition, str | KafkaError]:
        raise AssertionError("it has no leader")

    async def script(cluster: Cluster) -> dict[TopicPartition, str | KafkaError]:
        return await cluster.by_leader([TopicPartition("orders", 2)], ask)

    (error,) = ask_cluster(script, {}, timeout_ms=100).values()
    assert isinstance(error, KafkaError)
    assert (error.code, str(error)) == (ErrorCode.LEADER_NOT_AVAILABLE, "orders-2 has no leader now")


@pytest.mark.parametrize("newest", [3, 6])
def test_coordinators_are_found_with_every_version(newest: int) -> None:
    def find(request: FindCoordinatorRequest, version: int) -> FindCoordinatorResponse:
        if version < 4:
            return FindCoordinatorResponse(node_id=2, host="two", port=9092)
        found = [Coordinator(key=key, node_id=2, host="two", port=9092) for key in request.coordinator_keys]
        return FindCoordinatorResponse(coordinators=found)

    replies = iter([ErrorCode.NOT_COORDINATOR, 0])

    async def ask(node_id: int, ids: list[str]) -> dict[str, int | KafkaError]:
        code = next(replies)
        return dict.fromkeys(ids, exception_of(code) if code else node_id)

    async def script(cluster: Cluster) -> dict[str, int | KafkaError]:
        return await cluster.by_coordinator(CoordinatorKind.GROUP, ["g"], ask)

    served = all_versions(FindCoordinator=(0, newest))
    assert ask_cluster(script, {FindCoordinatorRequest: find}, served=served) == {"g": 2}


def test_controllers_are_described_instead_of_brokers() -> None:
    def describe(request: DescribeClusterRequest, version: int) -> DescribeClusterResponse:
        assert request.endpoint_type == 2
        nodes = [DescribeClusterBroker(broker_id=3000, host="one", port=9092)]
        return DescribeClusterResponse(cluster_id="c", controller_id=3000, brokers=nodes)

    async def script(cluster: Cluster) -> list[int]:
        await cluster.ask_controller(HeartbeatRequest())
        return list(cluster.brokers)

    handlers: dict[type[Message], Callable[[Any, int], object]] = {
        DescribeClusterRequest: describe,
        HeartbeatRequest: lambda *_: HeartbeatResponse(),
    }
    assert ask_cluster(script, handlers, controllers=True) == [3000]


def test_absent_broker_is_reported_at_once_if_asked_so() -> None:
    with pytest.raises(UnreachableError, match=f"nothing listens at {BOOTSTRAP[0]}:{BOOTSTRAP[1]}") as refused:
        ask_cluster(
            lambda cluster: cluster.ask_any(HeartbeatRequest()), {}, nodes={}, timeout_ms=60_000, waits_for_brokers=False
        )
    assert refused.value.is_absent


def test_peer_that_breaks_the_protocol_is_not_asked_again_if_asked_so() -> None:
    asked: list[object] = []

    def answer(*request: object) -> bytes:
        asked.append(request)
        return b"\0\0\0\2ab"

    with pytest.raises(UnreachableError) as refused:
        ask_cluster(
            lambda cluster: cluster.ask_any(HeartbeatRequest()),
            {HeartbeatRequest: answer},
            timeout_ms=60_000,
            waits_for_brokers=False,
        )
    assert (len(asked), refused.value.is_absent) == (1, False)


def test_unknown_advertised_host_is_reported_at_once_if_asked_so() -> None:
    node = FakeNode({MetadataRequest: metadata})
    with pytest.raises(UnreachableError, match=r"broker 2 tells its clients to connect to two:9092 \(its advertised"):
        ask_cluster(
            lambda cluster: cluster.ask_controller(HeartbeatRequest()),
            {},
            nodes={BOOTSTRAP: node, ONE: node, TWO: gaierror(-2, "not known")},
            timeout_ms=60_000,
            waits_for_brokers=False,
        )


def test_the_first_bootstrap_server_that_answers_is_used() -> None:
    node = FakeNode({MetadataRequest: metadata})
    answer = ask_cluster(
        lambda cluster: cluster.topic("orders"),
        {},
        nodes={BOOTSTRAP: node, ONE: node, TWO: node},
        bootstrap=[("down", 1), BOOTSTRAP],
        waits_for_brokers=False,
    )
    assert answer.name == "orders"


def test_the_error_names_every_bootstrap_server_that_failed() -> None:
    with pytest.raises(UnreachableError) as refused:
        ask_cluster(
            lambda cluster: cluster.ask_any(HeartbeatRequest()),
            {},
            nodes={},
            bootstrap=[("a", 1), ("b", 2)],
            waits_for_brokers=False,
        )
    assert "nothing listens at a:1" in str(refused.value)
    assert "nothing listens at b:2" in str(refused.value)
    assert refused.value.is_absent


def test_a_web_server_is_recognised_and_is_not_an_absent_broker() -> None:
    web = FakeNode({ApiVersionsRequest: lambda request, version: b"HTTP/1.1 400 Bad Request\r\n\r\n"})
    with pytest.raises(UnreachableError, match="It speaks HTTP") as refused:
        ask_cluster(lambda cluster: cluster.topics(), {}, nodes={BOOTSTRAP: web}, waits_for_brokers=False)
    assert not refused.value.is_absent


def test_partitions_whose_leader_moves_during_the_call_are_asked_for_at_the_new_one() -> None:
    """Two brokers. One partition moves from one to the other during the request; another has no leader at first."""
    state = {"asked": 0}

    def answer(request: MetadataRequest, version: int) -> MetadataResponse:
        state["asked"] += 1
        is_early = state["asked"] < 3
        leaders = {0: 1, 1: 1 if is_early else 2, 2: -1 if is_early else 2}
        partitions = [MetadataResponsePartition(partition_index=index, leader_id=leader) for index, leader in leaders.items()]
        brokers = [MetadataResponseBroker(node_id=id, host=host, port=port) for id, (host, port) in ((1, ONE), (2, TWO))]
        return MetadataResponse(brokers=brokers, topics=[MetadataResponseTopic(name="orders", partitions=partitions)])

    calls: list[tuple[int, list[int]]] = []

    async def ask(node_id: int, partitions: list[TopicPartition]) -> dict[TopicPartition, int | KafkaError]:
        calls.append((node_id, [each.partition for each in partitions]))
        moved = exception_of(ErrorCode.NOT_LEADER_OR_FOLLOWER, "moved")
        return {each: moved if each.partition == 1 and node_id == 1 else node_id for each in partitions}

    wanted = [TopicPartition("orders", index) for index in range(3)]
    found = ask_cluster(lambda cluster: cluster.by_leader(wanted, ask), {MetadataRequest: answer})
    assert found == {wanted[0]: 1, wanted[1]: 2, wanted[2]: 2}
    assert calls[0] == (1, [0, 1])
    assert calls[-1] == (2, [1, 2])


def test_a_leader_whose_connection_is_lost_is_asked_again() -> None:
    failures = [NetworkError("gone"), NetworkError("gone")]

    async def ask(node_id: int, partitions: list[TopicPartition]) -> dict[TopicPartition, int | KafkaError]:
        if failures:
            raise failures.pop()
        return dict.fromkeys(partitions, 7)

    partition = TopicPartition("orders", 0)
    assert ask_cluster(lambda cluster: cluster.by_leader([partition], ask), {}) == {partition: 7}


def test_deadline_error_says_why_there_was_no_answer() -> None:
    """The inner attempts that look for the controller have met the cause; the outer call must not hide it."""
    with pytest.raises(TimeoutError, match=r"default\.api\.timeout\.ms.*: nothing listens at first:9092"):
        ask_cluster(lambda cluster: cluster.ask_controller(HeartbeatRequest()), {}, nodes={}, timeout_ms=300)


# The cluster of a client's settings: which nodes it asks, under which client id.

WHERE = ("localhost", 9092)


def run(node: FakeNode | None, settings: dict[str, object], client_id: str = "ottla") -> None:
    """Ask for metadata once."""

    async def body() -> None:
        world = real_client_world()._replace(network=FakeNetwork({} if node is None else {WHERE: node}))
        cluster = open_cluster(world, admin_settings(keywords=settings), client_id, waits_for_brokers=False)
        try:
            await cluster.metadata([])
        finally:
            cluster.close()

    asyncio.run(body())


def test_client_id_of_the_settings_comes_before_the_default() -> None:
    node = FakeNode({MetadataRequest: lambda *_: MetadataResponse()})
    run(node, {"bootstrap_servers": "localhost:9092"}, "tool")
    run(node, {"bootstrap_servers": "localhost:9092", "client_id": "mine"}, "tool")
    assert node.client_ids == {"tool", "mine"}


def test_controllers_are_asked_to_describe_the_cluster() -> None:
    node = FakeNode({DescribeClusterRequest: lambda *_: DescribeClusterResponse(cluster_id="c")})
    run(node, {"bootstrap_controllers": "localhost:9092"})
    assert [each.endpoint_type for each in node.asked_for(DescribeClusterRequest)] == [2]


def test_brokers_that_are_not_there_are_an_error_at_once() -> None:
    with pytest.raises(UnreachableError, match="no broker can be reached"):
        run(None, {"bootstrap_servers": "localhost:9092"})


# Which requests have no answer yet.


def fail(waits: Waits, node_id: int, key: int, now_s: float, error: BaseException) -> None:
    with pytest.raises(type(error)), waits.asking(node_id, key, now_s):
        raise error


def test_request_waits_from_its_first_attempt_until_its_answer() -> None:
    waits = Waits()
    fail(waits, 2, ApiKey.LIST_GROUPS, 1.0, NetworkError("refused"))
    wait = waits.oldest(1.5)
    assert wait is not None
    assert (wait.node_id, wait.api, wait.since_s, str(wait.reason)) == (2, "ListGroups", 1.0, "refused")
    with waits.asking(2, ApiKey.LIST_GROUPS, 2.0):
        with waits.asking(ANY_NODE, ApiKey.METADATA, 2.0):
            pass
        again = waits.oldest(2.5)
        assert again == wait
    assert waits.oldest(3.0) is None


@pytest.mark.parametrize("error", [KafkaError(ErrorCode.UNSUPPORTED_VERSION, "no"), builtins.TimeoutError()])
def test_request_that_is_not_asked_again_does_not_wait(error: BaseException) -> None:
    waits = Waits()
    fail(waits, 2, ApiKey.LIST_GROUPS, 1.0, error)
    assert waits.oldest(1.0) is None


def test_answer_of_another_node_ends_a_wait_but_finding_nodes_does_not() -> None:
    waits = Waits()
    fail(waits, 2, ApiKey.LIST_OFFSETS, 1.0, NetworkError("refused"))
    with waits.asking(ANY_NODE, ApiKey.METADATA, 2.0):
        pass
    assert waits.oldest(2.0) is not None
    with waits.asking(1, ApiKey.LIST_OFFSETS, 3.0):
        pass
    assert waits.oldest(3.0) is None


def test_attempts_that_are_repeated_soon_are_one_wait() -> None:
    waits, error = Waits(), KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, "partition t-0 has no leader")
    waits.repeated(error, 1.0)
    waits.repeated(error, 3.0)
    wait = waits.oldest(4.0)
    assert wait is not None
    assert (wait.since_s, wait.api, wait.reason) == (1.0, "", error)
    assert waits.oldest(6.0) is None, "it is not repeated any more"
    waits.repeated(error, 7.0)
    wait = waits.oldest(7.0)
    assert wait is not None
    assert wait.since_s == 7.0


@pytest.mark.parametrize(
    ("node_id", "key", "is_for_controller"),
    [(CONTROLLER, ApiKey.CREATE_TOPICS, True), (ANY_NODE, ApiKey.DESCRIBE_QUORUM, True), (2, ApiKey.LIST_GROUPS, False)],
)
def test_controller_is_waited_for_through_brokers(node_id: int, key: int, is_for_controller: bool) -> None:
    waits = Waits()
    with waits.asking(node_id, key, 1.0):
        wait = waits.oldest(1.0)
        assert wait is not None
        assert wait.is_for_controller == is_for_controller
