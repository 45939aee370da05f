"""The metrics of the faces: a collector for Prometheus, and the client's instance id, the same in all of them."""

import asyncio
import copy
import pickle
from random import Random
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from tests.support.nodes.fake_node import FakeNetwork, FakeNode, all_versions
from tests.support.servers.kafka_server import HANG_S

from ottla import Admin, Consumer, Producer, aio
from ottla.client.measured import MeasuredFace
from ottla.client.world import ClientWorld
from ottla.env.real.clock import RealClock
from ottla.env.real.threads import RealThreads
from ottla.errors import IllegalStateError, TimeoutError, UnsupportedVersionError
from ottla.ids import Uuid
from ottla.sim.world import SeededRandomness
from ottla.wire.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker

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
    with pytest.raises(TimeoutError, match=r"within 0\.05 s: no broker has answered"):
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
