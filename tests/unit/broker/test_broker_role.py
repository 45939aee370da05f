"""The broker of a node: what it does with each image, and what it reports. tests/unit/broker/test_node.py runs it whole."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.broker.broker_role import BrokerRole
from ottla.broker.settings import BrokerSettings
from ottla.broker.solo_settings import solo_settings
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid
from ottla.metadata.image.delta import MetadataDelta
from ottla.metadata.image.image import MetadataImage, Provenance
from ottla.wire.base import Message
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest
from ottla.wire.messages.metadata_records import RegisterBrokerRecord

DIRECTORY, OTHER = Uuid(b"directory-one---"), Uuid(b"directory-two---")
IMAGE = MetadataImage()


class Channel:
    def __init__(self) -> None:
        self.requests: list[Any] = []

    async def call(self, request: Message, timeout_ms: int | None = None) -> Any:
        self.requests.append(request)
        return SimpleNamespace(is_fenced=False, broker_epoch=9)


def role_of(channel: Any, cordoned: list[Uuid]) -> BrokerRole:
    node: Any = SimpleNamespace(
        node_id=1,
        cluster_id="cluster",
        loader=SimpleNamespace(published=IMAGE, published_offset=5, published_up_to=lambda end_offset: asyncio.sleep(0)),
        settings=BrokerSettings(solo_settings("127.0.0.1", 0, "data")),
        world=SimpleNamespace(clock=None, randomness=SimpleNamespace(new_uuid=lambda: OTHER)),
    )
    storage: Any = SimpleNamespace(directories=SimpleNamespace(cordoned_ids=cordoned))
    return BrokerRole(node, storage, channel, True, lambda reason: None)


def test_changed_cordoned_directories_are_reported_once() -> None:
    async def run() -> None:
        channel, cordoned = Channel(), [DIRECTORY]
        role = role_of(channel, cordoned)
        role.membership.epoch = 9
        for _ in range(2):
            role.applied(MetadataDelta(IMAGE), IMAGE)
            await asyncio.sleep(0.01)
        assert [each.cordoned_log_dirs for each in channel.requests] == [[DIRECTORY]]
        cordoned.append(OTHER)
        role.applied(MetadataDelta(IMAGE), IMAGE)
        await asyncio.sleep(0.01)
        assert channel.requests[-1].cordoned_log_dirs == [DIRECTORY, OTHER]

    asyncio.run(run())


def test_lost_directory_is_reported_unless_the_node_stops() -> None:
    async def run() -> None:
        channel = Channel()
        role = role_of(channel, [])
        role.membership.epoch = 9
        looks: list[None] = []
        moves = SimpleNamespace(directory_lost=lambda: looks.append(None))
        role._services = SimpleNamespace(moves=moves)  # type: ignore[assignment]  # a stand-in
        for must_stop in ("the last directory has failed", None):
            loss: Any = SimpleNamespace(must_stop=must_stop, directory_id=DIRECTORY)
            role._tell_lost(loss)
            await asyncio.sleep(0.01)
        assert [each.offline_log_dirs for each in channel.requests] == [[DIRECTORY]]
        assert len(looks) == 1
        assert role.epoch == 9

    asyncio.run(run())


@pytest.mark.parametrize(
    ("found", "previous_epoch"),
    [
        ([(True, 7), (True, 7)], 7),
        ([(True, 7), (True, 6)], -1),
        ([(True, 7), (True, None)], -1),
        ([(True, 7), (False, None)], -1),
        ([(True, 7), (False, 7)], -1),
    ],
)
def test_registration_is_clean_only_if_all_directories_are_online_and_clean(
    found: list[tuple[bool, int | None]], previous_epoch: int
) -> None:
    """What the others hold is unknown, as in Apache's readBrokerEpochFromCleanShutdownFiles."""
    channel = Channel()
    role = role_of(channel, [])
    each: list[Any] = [
        SimpleNamespace(
            directory_id=directory_id, is_online=is_online, found=None if epoch is None else SimpleNamespace(broker_epoch=epoch)
        )
        for directory_id, (is_online, epoch) in zip((DIRECTORY, OTHER), found, strict=True)
    ]
    directories: Any = SimpleNamespace(directories=each, cordoned_ids=[])
    partitions: Any = SimpleNamespace(incarnation_id=None)
    asyncio.run(role._register([], directories, partitions))
    registration = channel.requests[0]
    assert registration.incarnation_id == partitions.incarnation_id, "partitions lead nothing before this registration"
    assert registration.previous_broker_epoch == previous_epoch
    assert registration.log_dirs == sorted(each.directory_id for each in directories.directories if each.is_online)


def image_of(offset: int, *registered: tuple[int, Uuid]) -> MetadataImage:
    """Metadata up to `offset` with these brokers: id and incarnation."""
    delta = MetadataDelta(IMAGE)
    for broker_id, incarnation in registered:
        delta.replay(
            RegisterBrokerRecord(broker_id=broker_id, broker_epoch=offset, incarnation_id=incarnation, log_dirs=[DIRECTORY])
        )
    return delta.finish(Provenance(offset=offset))


def test_broker_that_was_unregistered_registers_again_and_says_why(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        channel = Channel()
        role = role_of(channel, [])
        await role.membership.join([], [DIRECTORY], [], rack=None, incarnation_id=OTHER, last_epoch=-1)
        asked = len(channel.requests)
        role.applied(MetadataDelta(IMAGE), image_of(8))  # older than its registration at offset 9
        await asyncio.sleep(0.01)
        assert len(channel.requests) == asked
        for _ in range(2):
            role.applied(MetadataDelta(IMAGE), image_of(10))
        await asyncio.sleep(0.01)
        registration, heartbeat = channel.requests[asked:]
        assert isinstance(registration, BrokerRegistrationRequest)
        assert (registration.incarnation_id, registration.previous_broker_epoch) == (OTHER, 9)
        assert isinstance(heartbeat, BrokerHeartbeatRequest)
        role.membership._has_left = True
        role.applied(MetadataDelta(IMAGE), image_of(11))
        await asyncio.sleep(0.01)
        assert len(channel.requests) == asked + 2, "it stops: nobody needs it any more"

    asyncio.run(run())
    assert "broker 1 was unregistered while it runs" in caplog.text


def test_registration_is_tried_again_until_the_controller_takes_it(caplog: pytest.LogCaptureFixture) -> None:
    class Busy(Channel):
        refusals = 0

        async def call(self, request: Message, timeout_ms: int | None = None) -> Any:
            if self.refusals and isinstance(request, BrokerRegistrationRequest):
                self.refusals -= 1
                raise KafkaError(ErrorCode.NOT_CONTROLLER, "there is no controller now")
            return await super().call(request, timeout_ms)

    async def run() -> None:
        channel = Busy()
        role = role_of(channel, [])
        role.membership._interval_ms = 1
        await role.membership.join([], [DIRECTORY], [], rack=None, incarnation_id=OTHER, last_epoch=-1)
        channel.refusals = 2
        await role.membership.rejoin()
        assert channel.refusals == 0
        assert role.membership._heartbeats is not None
        role.membership._heartbeats.cancel()

    asyncio.run(run())
    assert caplog.text.count("could not register again, and tries it in 0.001 s: there is no controller now") == 2


def test_broker_whose_id_another_process_has_taken_stops() -> None:
    async def run() -> list[BaseException]:
        stopped: list[BaseException] = []
        role = role_of(Channel(), [])
        role._on_broken = stopped.append
        await role.membership.join([], [DIRECTORY], [], rack=None, incarnation_id=OTHER, last_epoch=-1)
        role.applied(MetadataDelta(IMAGE), image_of(9, (1, OTHER)))
        assert not stopped
        role.applied(MetadataDelta(IMAGE), image_of(12, (1, DIRECTORY)))
        return stopped

    (reason,) = asyncio.run(run())
    assert "another process has registered as broker 1 (epoch 12)" in str(reason)
