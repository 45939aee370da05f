"""Each stage of the request pipeline, on a real node's pipeline: left out, its test fails.

That the fast path and the general one agree is shown by the stories in `handlers/fast_path`.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from tests.support.logs.batches import make_batch
from tests.support.nodes.net_server import EchoServer, FrameClient, produce
from tests.support.nodes.rules import Denying, Throttling
from tests.unit.broker.test_node import Stage

from ottla.broker.channel.forwarded import ForwardedRequest, answer_forwarded
from ottla.broker.node import Node
from ottla.broker.requests import pipeline
from ottla.broker.requests.apis import SERVED, Quota, checks_of
from ottla.broker.requests.context import CloseConnection, ConnectionInfo
from ottla.broker.requests.parked import Parked
from ottla.errors.codes import ErrorCode
from ottla.ids import Principal
from ottla.metadata.acls import CLUSTER_NAME, Operation, ResourceType
from ottla.sim.loop import VirtualLoop
from ottla.sim.net import SimNetwork
from ottla.wire.api_table import ApiKey
from ottla.wire.apis import APIS
from ottla.wire.base import Message
from ottla.wire.codec import decode_all
from ottla.wire.headers import encode_request, encode_response, read_response_header
from ottla.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

ALICE = Principal("User", "alice")
NEWEST_WITH_NAMES = 12
"""Version of Produce requests; later ones have topic ids."""


def on_a_node(work: Callable[[Node], Coroutine[Any, Any, None]]) -> None:
    loop = VirtualLoop()

    async def run() -> None:
        node = await Stage(loop).start("broker,controller")
        try:
            topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in ("one", "two")]
            created = await ask(node, CreateTopicsRequest(topics=topics, timeout_ms=30_000))
            assert [each.error_code for each in created.topics] == [0, 0]
            await work(node)
        finally:
            await node.stop()

    try:
        loop.run_until_complete(run())
    finally:
        loop.close()


async def ask(
    node: Node,
    request: Message,
    *,
    on_controller: bool = False,
    info: ConnectionInfo | None = None,
    version: int | None = None,
) -> Any:
    """What alice's request is answered by the node's pipeline."""
    if info is None:
        info = ConnectionInfo(1, "L", ("10.1.2.3", 5000), on_controller, ALICE)
    if version is None:
        version = APIS[request.KEY].advertised()[1]
    frame = bytearray(b"".join(encode_request(request, version, 7, "shop")))[4:]  # type: ignore[arg-type]  # buffers
    reply = node.pipeline.handle(info, frame)
    if isinstance(reply, Parked):
        answered = asyncio.Event()
        reply.on_ready = answered.set
        if not reply.is_ready:
            await answered.wait()
        reply = reply.parts
    assert reply is not None
    data = b"".join(reply)[4:]  # type: ignore[arg-type]  # buffers
    _, body = read_response_header(data, request.KEY, version)
    return decode_all(APIS[request.KEY].response_class, version, data, body)


def offsets_of(*names: str) -> ListOffsetsRequest:
    return ListOffsetsRequest(
        topics=[ListOffsetsTopic(name=name, partitions=[ListOffsetsPartition(timestamp=-1)]) for name in names]
    )


def number_of(frame: bytearray) -> int:
    return int.from_bytes(frame[:4], "big")


def codes_of(response: Any) -> dict[str, int]:
    return {topic.name: topic.partitions[0].error_code for topic in response.topics}


class Path:
    """Sends records to the topic `one` on one of the two paths of a node's pipeline, and fails if they take the other."""

    def __init__(self, node: Node, is_fast: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        self.node, self.is_fast = node, is_fast
        self.general = 0
        self.info = ConnectionInfo(1, "L", ("10.1.2.3", 5000), False, ALICE)
        handle_frame = node.pipeline._handle_frame

        def counted(*arguments: Any) -> Any:
            self.general += 1
            return handle_frame(*arguments)

        monkeypatch.setattr(node.pipeline, "_handle_frame", counted)

    async def produce(self) -> Any:
        """The response to one batch."""
        data = TopicProduceData(
            name="one", partition_data=[PartitionProduceData(index=0, records=memoryview(make_batch(b"value")))]
        )
        return await ask(self.node, ProduceRequest(acks=1, topic_data=[data]), info=self.info, version=NEWEST_WITH_NAMES)

    async def ready(self) -> None:
        """The first request is handled on the general path: it loads the handler, and asks the rule."""
        await self.produce()
        if not self.is_fast:
            self.node.pipeline._fast_paths.clear()
        self.general = 0
        await self.produce()
        assert self.general == (0 if self.is_fast else 1)

    async def end_offset(self) -> int:
        response = await ask(self.node, offsets_of("one"))
        return int(response.topics[0].partitions[0].offset)


both_paths = pytest.mark.parametrize("is_fast", [True, False], ids=["fast", "general"])


class NotLoggedIn:
    """A login that lets nothing pass."""

    def takes(self, frame: bytearray, now_s: float) -> bool:
        return True

    def answer(self, *arguments: Any) -> Any:
        raise CloseConnection("not logged in")


@both_paths
def test_nothing_passes_before_the_login(is_fast: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(node: Node) -> None:
        path = Path(node, is_fast, monkeypatch)
        await path.ready()
        stored = await path.end_offset()
        path.info.login = NotLoggedIn()  # type: ignore[assignment]
        with pytest.raises(CloseConnection, match="not logged in"):
            await path.produce()
        assert await path.end_offset() == stored

    on_a_node(work)


@both_paths
def test_denied_records_are_not_stored(is_fast: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(node: Node) -> None:
        rule = node.pipeline.authorization.authorizer = Denying()
        path = Path(node, is_fast, monkeypatch)
        await path.ready()
        stored = await path.end_offset()
        rule.deny_topics("one")
        refused = await path.produce()
        assert refused.responses[0].partition_responses[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        rule.deny()
        assert await path.end_offset() == stored

    on_a_node(work)


@both_paths
def test_client_above_its_quota_is_told_and_muted(is_fast: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(node: Node) -> None:
        path = Path(node, is_fast, monkeypatch)
        await path.ready()
        throttle = node.pipeline.throttling.rule = Throttling(1500)
        assert (await path.produce()).throttle_time_ms == 1500
        assert path.general == (0 if is_fast else 2)
        assert path.info.muted_until_s == pytest.approx(asyncio.get_running_loop().time() + 1.5, abs=0.01)
        (usage,) = throttle.used
        assert (usage.connection, usage.client_id, usage.quota) == (path.info, "shop", Quota.PRODUCE)

    on_a_node(work)


def test_unserved_version_and_unserved_api_end_the_connection() -> None:
    """The version that the descriptor has, on the listener that it names."""

    async def work(node: Node) -> None:
        served = APIS[ApiKey.LIST_OFFSETS].advertised()[1]
        assert codes_of(await ask(node, offsets_of("one"), version=served)) == {"one": ErrorCode.NONE}
        assert (await ask(node, BrokerHeartbeatRequest(broker_id=1), on_controller=True)).error_code >= 0
        with pytest.raises(CloseConnection, match="this API is not served here"):
            await ask(node, BrokerHeartbeatRequest(broker_id=1))
        newest = node.pipeline._routes[ApiKey.LIST_OFFSETS]
        newest.newest = served - 1
        with pytest.raises(CloseConnection, match=f"versions 1 to {served - 1} are served"):
            await ask(node, offsets_of("one"), version=served)

    on_a_node(work)


def test_denied_topics_are_refused_and_the_others_are_handled() -> None:
    async def work(node: Node) -> None:
        rule = node.pipeline.authorization.authorizer = Denying((ResourceType.TOPIC, "two"))
        answered = codes_of(await ask(node, offsets_of("one", "two")))
        assert answered == {"one": ErrorCode.NONE, "two": ErrorCode.TOPIC_AUTHORIZATION_FAILED}
        assert codes_of(await ask(node, offsets_of("two"))) == {"two": ErrorCode.TOPIC_AUTHORIZATION_FAILED}
        assert rule.asked[0] == (ALICE, "10.1.2.3", Operation.DESCRIBE, ResourceType.TOPIC, "one")
        records = [DeleteRecordsTopic(name=name, partitions=[DeleteRecordsPartition(offset=0)]) for name in ("one", "two")]
        answered = codes_of(await ask(node, DeleteRecordsRequest(topics=records, timeout_ms=1000)))
        assert answered == {"one": ErrorCode.NONE, "two": ErrorCode.TOPIC_AUTHORIZATION_FAILED}

    on_a_node(work)


def test_request_is_denied_as_a_whole() -> None:
    async def work(node: Node) -> None:
        node.pipeline.authorization.authorizer = Denying((ResourceType.GROUP, "g"), (ResourceType.CLUSTER, CLUSTER_NAME))
        refused = await ask(node, HeartbeatRequest(group_id="g", member_id="m", generation_id=1))
        assert refused.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
        refused = await ask(node, BrokerHeartbeatRequest(broker_id=1), on_controller=True)
        assert refused.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    on_a_node(work)


def test_rule_is_asked_once_until_it_changes() -> None:
    async def work(node: Node) -> None:
        rule = node.pipeline.authorization.authorizer = Denying()
        for info in (infos := [ConnectionInfo(port, "L", ("10.1.2.3", port), False, ALICE) for port in (5000, 5001, 5002)]):
            assert codes_of(await ask(node, offsets_of("one"), info=info)) == {"one": ErrorCode.NONE}
        assert len(rule.asked) == 1, "connections of the same principal and address share their grants"
        rule.deny_topics("one")
        assert codes_of(await ask(node, offsets_of("one"), info=infos[1])) == {"one": ErrorCode.TOPIC_AUTHORIZATION_FAILED}
        elsewhere = ConnectionInfo(4, "L", ("10.9.9.9", 1), False, ALICE)
        rule.deny()
        await ask(node, offsets_of("one"), info=elsewhere)
        assert rule.asked[-1][:2] == (ALICE, "10.9.9.9")

    on_a_node(work)


def test_forwarded_request_is_authorized_once_by_the_controller() -> None:
    """With the client's principal and address, whether the controller is in the same process or not."""

    async def work(node: Node) -> None:
        rule = node.pipeline.authorization.authorizer = Denying((ResourceType.TOPIC, "two"))
        more = [CreatePartitionsTopic(name=name, count=2, assignments=None) for name in ("one", "two")]
        answered = await ask(node, CreatePartitionsRequest(topics=more, timeout_ms=1000))
        assert {each.name: each.error_code for each in answered.results} == {
            "one": ErrorCode.NONE,
            "two": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        }
        assert [asked[0] for asked in rule.asked] == [ALICE, ALICE]
        assert [asked[1] for asked in rule.asked] == ["10.1.2.3"] * 2
        rule.deny((ResourceType.CLUSTER, CLUSTER_NAME))
        refused = await ask(node, AlterPartitionReassignmentsRequest(timeout_ms=1000))
        assert refused.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        services: Any = node.pipeline.services
        forwarded = ForwardedRequest(AlterPartitionReassignmentsRequest(), 0, 1, "shop", ALICE, "10.1.2.3")
        assert (await answer_forwarded(services, forwarded)).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED  # type: ignore[attr-defined]

    on_a_node(work)


def test_who_asks_reaches_the_controllers_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(node: Node) -> None:
        services: Any = node.pipeline.services
        askers = []
        call = services.controller.call

        async def watched(request: Message, asker: Any) -> Any:
            askers.append(asker)
            return await call(request, asker)

        monkeypatch.setattr(services.controller, "call", watched)
        await ask(node, CreateTopicsRequest(topics=[CreatableTopic(name="three", num_partitions=1)], timeout_ms=1000))
        await ask(node, CreateTopicsRequest(topics=[], timeout_ms=1000), on_controller=True)
        assert [(each.principal, each.host, each.client_id, each.version) for each in askers] == [
            (ALICE, "10.1.2.3", "shop", APIS[ApiKey.CREATE_TOPICS].newest)
        ] * 2

    on_a_node(work)


def test_throttle_time_is_in_the_response_and_the_request_is_counted() -> None:
    async def work(node: Node) -> None:
        throttle = node.pipeline.throttling.rule = Throttling(1500)
        info = ConnectionInfo(1, "L", ("10.1.2.3", 5000), False, ALICE)
        assert (await ask(node, offsets_of("one"), info=info)).throttle_time_ms == 1500
        assert info.muted_until_s == pytest.approx(asyncio.get_running_loop().time() + 1.5, abs=0.01)
        (usage,) = throttle.used
        assert (usage.connection, usage.client_id, usage.quota) == (info, "shop", Quota.REQUEST)
        assert usage.request_bytes > 0
        await ask(node, BrokerHeartbeatRequest(broker_id=1), on_controller=True)
        assert len(throttle.used) == 1, "requests between nodes are not slowed down"

    on_a_node(work)


def test_throttled_response_is_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[Message] = []

    def encode(response: Message, version: int, correlation_id: int) -> list[Any]:
        encoded.append(response)
        return encode_response(response, version, correlation_id)

    monkeypatch.setattr(pipeline, "encode_response", encode)

    async def work(node: Node) -> None:
        encoded.clear()
        node.pipeline.throttling.rule = Throttling(1500)
        assert (await ask(node, offsets_of("one"))).throttle_time_ms == 1500
        assert len(encoded) == 1

    on_a_node(work)


@pytest.mark.parametrize("at_once", [False, True])
def test_muted_connection_is_not_read(at_once: bool) -> None:
    """Neither requests that have come with the one that is throttled are handled, nor those that come later."""
    loop = VirtualLoop()

    async def run() -> None:
        network = SimNetwork()
        server = EchoServer(network.host("here"))
        port = await server.start("here")
        server.pipeline.throttling.rule = Throttling(2000)
        client = await FrameClient.connect(network.host("there"), "here", port)
        other = await FrameClient.connect(network.host("there"), "here", port)
        began_s = loop.time()
        frames = [produce("plain", number) for number in range(3)]
        if at_once:
            client.send(b"".join(frames))
        else:
            for frame in frames:
                client.send(frame)
                await asyncio.sleep(0.01)
        assert number_of(await client.frame()) == 0
        assert loop.time() - began_s < 1, "the reply leaves at once"
        other.send(produce("plain", 9))
        assert number_of(await other.frame()) == 9
        assert loop.time() - began_s < 1, "others are served meanwhile"
        for number in (1, 2):
            assert number_of(await client.frame()) == number
            assert loop.time() - began_s >= 2 * number
        await server.listeners.close()

    try:
        loop.run_until_complete(run())
    finally:
        loop.close()


def test_every_served_api_has_a_complete_descriptor() -> None:
    for key, api in SERVED.items():
        for on_controller in (False, True):
            for check in checks_of(key, on_controller):
                if check.resource_type == ResourceType.TOPIC:
                    assert api.topics is not None, APIS[key].name
                elif check.resource_type != ResourceType.CLUSTER:
                    assert hasattr(APIS[key].request_class(), check.field), APIS[key].name
        if api.on_broker is None:
            assert api.quota == Quota.NONE, "requests between nodes are not slowed down"
            assert any(check.resource_type == ResourceType.CLUSTER for check in checks_of(key, True)), APIS[key].name
