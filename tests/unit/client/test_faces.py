"""The synchronous and the asyncio form of each client have the same calls, with the same signatures and docstrings."""

import asyncio
import copy
import inspect
import pickle
from collections.abc import Awaitable, Callable
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from tests.support.nodes.fake_node import FakeNetwork, FakeNode, all_versions
from tests.support.servers.kafka_server import HANG_S

from ottla import Admin, Consumer, Producer, aio
from ottla.client.faces import MeasuredFace, blocking, blocking_steps, check_loop, finished
from ottla.client.world import ClientWorld
from ottla.env.real.clock import RealClock
from ottla.env.real.threads import RealThreads
from ottla.errors import IllegalStateError, TimeoutError, UnsupportedVersionError
from ottla.ids import Uuid
from ottla.sim.world import SeededRandomness
from ottla.testing import Broker
from ottla.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker

ONLY_ASYNCIO = {"start"}


def calls_of(face: type) -> dict[str, Callable[..., Any]]:
    return {
        name: getattr(face, name)
        for name in dir(face)
        if not name.startswith("_") and callable(inspect.getattr_static(face, name))
    }


@pytest.mark.parametrize(
    ("blocking_face", "asyncio_face"), [(Producer, aio.Producer), (Consumer, aio.Consumer), (Admin, aio.Admin)]
)
def test_both_faces_have_the_same_calls_signatures_and_docstrings(blocking_face: type, asyncio_face: type) -> None:
    ours, theirs = calls_of(blocking_face), calls_of(asyncio_face)
    assert set(theirs) - set(ours) <= ONLY_ASYNCIO
    assert set(ours) <= set(theirs)
    for name, call in ours.items():
        assert inspect.getdoc(call), name
        if name not in {"close", "with_timeout"} or blocking_face is not Admin:
            assert inspect.getdoc(call) == inspect.getdoc(theirs[name]), name
        assert shape(call) == shape(theirs[name]), name
        assert next(iter(inspect.signature(call).parameters)) == "self", name


def shape(call: Callable[..., Any]) -> list[tuple[str, object, object]]:
    """A call's parameters without their types: the compiled `send` knows none."""
    return [(each.name, each.kind, each.default) for each in inspect.signature(call).parameters.values()]


def test_only_calls_that_wait_are_coroutines() -> None:
    plain = {name for name, call in calls_of(aio.Consumer).items() if not inspect.iscoroutinefunction(call)}
    assert {"assign", "subscribe", "seek", "pause", "resume", "commit_async", "wakeup", "read_ranges"} <= plain
    assert not {"poll", "batches", "commit", "position", "close"} & plain
    assert not any(inspect.iscoroutinefunction(call) for call in calls_of(Consumer).values())
    assert not any(inspect.iscoroutinefunction(call) for call in calls_of(Producer).values())


class Face:
    """A synchronous face of one call, and what has happened in it."""

    def __init__(self) -> None:
        self.seen: list[str] = []


async def steps(self: Face, count: int) -> Any:
    """Count."""
    try:
        for number in range(count):
            yield number
    except ValueError:
        self.seen.append("raised")
        raise
    finally:
        self.seen.append("closed")


def test_a_generator_of_a_synchronous_face_ends_closes_and_raises_as_the_asyncio_one_does() -> None:
    counted = blocking_steps(steps)
    face = Face()
    assert list(counted(face, 3)) == [0, 1, 2]
    assert face.seen == ["closed"]
    abandoned: Any = counted(face, 3)
    next(abandoned)
    abandoned.close()
    assert face.seen == ["closed", "closed"]
    with pytest.raises(ValueError, match="inside"), contextmanager(counted)(face, 1):
        raise ValueError("inside")
    assert face.seen[2:] == ["raised", "closed"]
    with pytest.raises(StopIteration), contextmanager(counted)(face, 1):
        raise StopIteration


def test_a_call_that_suspends_in_a_synchronous_face_is_a_bug_and_says_so() -> None:
    class Suspended:
        def __await__(self) -> Any:
            yield

    async def wait(self: Face) -> None:
        await Suspended()

    with pytest.raises(RuntimeError, match="bug of Ottla"):
        blocking(wait)(Face())
    with pytest.raises(KeyError):
        finished(refuse())


async def refuse() -> None:
    raise KeyError("what a call raises comes out unchanged")


# An asyncio client is used on one event loop; on another one it says so instead of waiting forever.


def test_only_another_running_loop_is_refused() -> None:
    async def check(own: asyncio.AbstractEventLoop | None) -> asyncio.AbstractEventLoop:
        check_loop(own, "producer")
        check_loop(asyncio.get_running_loop(), "producer")
        return asyncio.get_running_loop()

    closed = asyncio.run(check(None))
    check_loop(closed, "producer")
    with pytest.raises(IllegalStateError, match=r"this producer is used on another event loop: .* which is closed"):
        asyncio.run(check(closed))


USES: list[tuple[Callable[[str], Any], Callable[[Any], Awaitable[object]]]] = [
    (aio.Producer, lambda producer: producer.send("t", b"v")),
    (aio.Producer, lambda producer: producer.flush()),
    (lambda where: aio.Consumer(where, group_id="g"), lambda consumer: consumer.list_topics()),
    (aio.Admin, lambda admin: admin.list_topics()),
]


@pytest.mark.parametrize(("make", "use"), USES)
def test_clients_refuse_another_loop(make: Callable[[str], Any], use: Callable[[Any], Awaitable[object]]) -> None:
    """As with a fixture of pytest-asyncio whose scope is wider than its loop's."""
    with Broker() as broker:
        client = make(broker.bootstrap_servers)
        own = asyncio.new_event_loop()
        own.run_until_complete(use(client))
        assert client.metrics()

        async def use_elsewhere() -> None:
            for call in (use, lambda client: client.close()):
                with pytest.raises(IllegalStateError, match="another event loop"):
                    await call(client)

        asyncio.run(use_elsewhere())
        own.run_until_complete(client.close())
        own.close()


# The metrics of the faces: a collector for Prometheus, and the client's instance id, the same in all of them.

WHERE = ("only", 9092)
ID = Uuid(b"0123456789abcdef")
SYNC: list[Any] = [Producer, Consumer]
ASYNC: list[Any] = [aio.Producer, aio.Consumer]


def metadata(request: MetadataRequest, version: int) -> MetadataResponse:
    return MetadataResponse(brokers=[MetadataResponseBroker(node_id=1, host=WHERE[0], port=WHERE[1])], cluster_id="c")


def subscription(request: GetTelemetrySubscriptionsRequest, version: int) -> GetTelemetrySubscriptionsResponse:
    return GetTelemetrySubscriptionsResponse(client_instance_id=ID, subscription_id=5, push_interval_ms=60_000)


def producer_id(request: InitProducerIdRequest, version: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(producer_id=1, producer_epoch=0)


def world(handlers: dict[Any, Any], served: Any = None) -> ClientWorld:
    answers = {MetadataRequest: metadata, InitProducerIdRequest: producer_id, **handlers}
    node = FakeNode(answers, *([] if served is None else [served]))
    return ClientWorld(RealClock(), FakeNetwork({WHERE: node}), SeededRandomness(Random(1)), RealThreads())


@pytest.fixture(params=[*SYNC, *ASYNC], ids=lambda face: f"{face.__module__.rpartition('.')[2]}-{face.__name__}")
def face(request: pytest.FixtureRequest) -> Any:
    return request.param


def ask_id(face: Any, world: ClientWorld, timeout: float | None, **settings: Any) -> Any:
    """The answer of `client_instance_id()`, of both kinds of faces."""
    if face in SYNC:
        with face("only:9092", world=world, **settings) as client:
            return client.client_instance_id(timeout)

    async def ask() -> Any:
        async with face("only:9092", world=world, **settings) as client:
            return await client.client_instance_id(timeout)

    return asyncio.run(ask())


def test_the_cluster_gives_an_idle_client_an_instance_id(face: Any) -> None:
    assert ask_id(face, world({GetTelemetrySubscriptionsRequest: subscription}), HANG_S) == ID


def test_without_enable_metrics_push_there_is_no_instance_id(face: Any) -> None:
    with pytest.raises(IllegalStateError, match=r"enable\.metrics\.push"):
        ask_id(face, world({}), HANG_S, enable_metrics_push=False)


def test_a_silent_broker_is_waited_for_as_long_as_the_caller_says(face: Any) -> None:
    silent = world({GetTelemetrySubscriptionsRequest: lambda request, version: None})
    with pytest.raises(TimeoutError, match=r"within 0\.05 s: "):
        ask_id(face, silent, 0.05)


def test_a_cluster_without_client_metrics_says_so_at_once(face: Any) -> None:
    served = all_versions(GetTelemetrySubscriptions=None, PushTelemetry=None)
    with pytest.raises(UnsupportedVersionError, match="no broker takes client metrics"):
        ask_id(face, world({}, served), HANG_S)


def test_a_negative_timeout_is_refused(face: Any) -> None:
    with pytest.raises(ValueError, match="timeout=-1"):
        ask_id(face, world({}), -1)


def test_every_synchronous_face_has_a_collector_for_prometheus() -> None:
    library = CollectorRegistry()
    for each in (Producer, Consumer, Admin):
        with each("only:9092", world=world({}), client_id="c") as client:
            assert isinstance(client, MeasuredFace)
            library.register(client.prometheus_collector())
    assert library.get_sample_value("kafka_producer_producer_metrics_record_send_total", {"client_id": "c"}) == 0
    for kind in ("consumer", "admin_client"):
        assert library.get_sample_value(f"kafka_{kind}_{kind}_metrics_connection_count", {"client_id": "c"}) == 0


def test_every_asyncio_face_has_a_collector_for_prometheus() -> None:
    async def body() -> list[Any]:
        found: list[Any] = []
        for each in (aio.Producer, aio.Consumer, aio.Admin):
            async with each("only:9092", world=world({})) as client:
                found.append([family.name for family in client.prometheus_collector().collect()])
        return found

    for names, kind in zip(asyncio.run(body()), ("producer", "consumer", "admin_client"), strict=True):
        assert f"kafka_{kind}_{kind}_metrics_connection_count" in names


@pytest.mark.parametrize("face", [Producer, Consumer, Admin, aio.Producer, aio.Consumer, aio.Admin])
def test_clients_refuse_to_be_pickled_and_copied(face: Any) -> None:
    client = face("localhost:9")
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match=f"{face.__name__} objects cannot be pickled or copied"):
            attempt(client)
    closed = client.close()
    if closed is not None:
        asyncio.run(closed)
