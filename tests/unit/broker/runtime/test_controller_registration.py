"""A standby controller registers itself through the channel, once, and as soon as the metadata.version knows registrations."""

import asyncio
from types import SimpleNamespace
from typing import Any

from tests.support.nodes.controller_cluster import ControllerCluster

from ottla.broker.runtime import controller_registration
from ottla.broker.runtime.controller_registration import ControllerRegistrar
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid
from ottla.metadata.controller.apis import decision_of
from ottla.metadata.features import METADATA_VERSION, SUPPORTED_FEATURES
from ottla.metadata.image.cluster import Endpoint
from ottla.wire.base import Message
from ottla.wire.messages.metadata_records import FeatureLevelRecord

INCARNATION = Uuid(b"incarnation-0007")


class Channel:
    """The active controller; refuses the first `refusals` requests."""

    def __init__(self, cluster: ControllerCluster, refusals: int = 0) -> None:
        self.cluster = cluster
        self.refusals = refusals
        self.asked = 0

    async def call(self, request: Message, timeout_ms: int | None = None) -> Any:
        self.asked += 1
        await asyncio.sleep(0)
        if self.asked <= self.refusals:
            raise ZeroDivisionError("a bug") if self.asked == 2 else KafkaError(ErrorCode.REQUEST_TIMED_OUT, "no controller")
        return self.cluster.apply(decision_of(request.KEY)(self.cluster.state, request, 0, 0))


def registrar(channel: Channel, is_active: bool = False) -> ControllerRegistrar:
    host = SimpleNamespace(
        node_id=7, incarnation_id=INCARNATION, endpoints=[Endpoint("CONTROLLER", "host7", 9093, 0)], is_active=is_active
    )
    return ControllerRegistrar(host, channel)  # type: ignore[arg-type]  # the parts that are used


async def settled(channel: Channel, asked: int) -> None:
    async with asyncio.timeout(30):
        while channel.asked < asked:
            await asyncio.sleep(0)
    for _ in range(5):
        await asyncio.sleep(0)


def test_standby_registers_once_however_often_it_is_refused(monkeypatch: Any) -> None:
    async def scene() -> None:
        monkeypatch.setattr(controller_registration, "RETRY_S", 0)
        channel = Channel(ControllerCluster(), refusals=3)
        registering = registrar(channel)
        for _ in range(3):
            registering.metadata_changed(channel.cluster.state.image)
        await settled(channel, 4)
        registering.metadata_changed(ControllerCluster().state.image)  # an image from before the registration
        await settled(channel, 4)
        assert channel.asked == 4
        found = channel.cluster.state.image.cluster.controllers[7]
        assert (found.incarnation_id, found.features) == (INCARNATION, SUPPORTED_FEATURES)
        assert [(each.host, each.port) for each in found.endpoints.values()] == [("host7", 9093)]
        await registering.close()

    asyncio.run(scene())


def test_registered_incarnation_and_active_controller_ask_nothing() -> None:
    async def scene() -> None:
        channel = Channel(ControllerCluster())
        registrar(channel, is_active=True).metadata_changed(channel.cluster.state.image)
        first = registrar(channel)
        first.metadata_changed(channel.cluster.state.image)
        await settled(channel, 1)
        registrar(channel).metadata_changed(channel.cluster.state.image)
        await settled(channel, 1)
        assert channel.asked == 1

    asyncio.run(scene())


def test_registration_waits_for_a_metadata_version_that_has_it() -> None:
    async def scene() -> None:
        channel = Channel(ControllerCluster(14))
        registering = registrar(channel)
        registering.metadata_changed(channel.cluster.state.image)
        await settled(channel, 0)
        assert channel.asked == 0
        channel.cluster.append([FeatureLevelRecord(name=METADATA_VERSION, feature_level=17)])
        registering.metadata_changed(channel.cluster.state.image)
        await settled(channel, 1)
        assert 7 in channel.cluster.state.image.cluster.controllers

    asyncio.run(scene())


def test_close_ends_the_attempts(monkeypatch: Any) -> None:
    async def scene() -> None:
        monkeypatch.setattr(controller_registration, "RETRY_S", 0)
        channel = Channel(ControllerCluster(), refusals=10**9)
        registering = registrar(channel)
        registering.metadata_changed(channel.cluster.state.image)
        await settled(channel, 3)
        await registering.close()
        asked = channel.asked
        await settled(channel, 0)
        assert channel.asked == asked

    asyncio.run(scene())
