"""The broker of a node: what it does with each image, and what it reports. tests/unit/broker/test_node.py runs it whole."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.broker.roles.broker_role import BrokerRole
from ottla.broker.settings import BrokerSettings
from ottla.broker.solo_settings import solo_settings
from ottla.ids import Uuid
from ottla.metadata.image.delta import MetadataDelta
from ottla.metadata.image.image import MetadataImage
from ottla.wire.base import Message

DIRECTORY, OTHER = Uuid(b"directory-one---"), Uuid(b"directory-two---")
IMAGE = MetadataImage()


class Door:
    def __init__(self) -> None:
        self.requests: list[Any] = []

    async def call(self, request: Message, timeout_ms: int | None = None) -> Any:
        self.requests.append(request)
        return SimpleNamespace(is_fenced=False, broker_epoch=9)


def role_of(door: Any, cordoned: list[Uuid]) -> BrokerRole:
    node: Any = SimpleNamespace(
        node_id=1,
        cluster_id="cluster",
        loader=SimpleNamespace(published_offset=5, published_up_to=lambda end_offset: asyncio.sleep(0)),
        settings=BrokerSettings(solo_settings("127.0.0.1", 0, "data")),
        world=SimpleNamespace(clock=None, randomness=SimpleNamespace(new_uuid=lambda: OTHER)),
    )
    storage: Any = SimpleNamespace(directories=SimpleNamespace(cordoned_ids=cordoned))
    return BrokerRole(node, storage, door, True, lambda reason: None)


def test_changed_cordoned_directories_are_reported_once() -> None:
    async def run() -> None:
        door, cordoned = Door(), [DIRECTORY]
        role = role_of(door, cordoned)
        role.membership.epoch = 9
        for _ in range(2):
            role.applied(MetadataDelta(IMAGE), IMAGE)
            await asyncio.sleep(0.01)
        assert [each.cordoned_log_dirs for each in door.requests] == [[DIRECTORY]]
        cordoned.append(OTHER)
        role.applied(MetadataDelta(IMAGE), IMAGE)
        await asyncio.sleep(0.01)
        assert door.requests[-1].cordoned_log_dirs == [DIRECTORY, OTHER]

    asyncio.run(run())


def test_lost_directory_is_reported_unless_the_node_stops() -> None:
    async def run() -> None:
        door = Door()
        role = role_of(door, [])
        role.membership.epoch = 9
        looks: list[None] = []
        moves = SimpleNamespace(directory_lost=lambda: looks.append(None))
        role._services = SimpleNamespace(moves=moves)  # type: ignore[assignment]  # a stand-in
        for must_stop in ("the last directory has failed", None):
            loss: Any = SimpleNamespace(must_stop=must_stop, directory_id=DIRECTORY)
            role._tell_lost(loss)
            await asyncio.sleep(0.01)
        assert [each.offline_log_dirs for each in door.requests] == [[DIRECTORY]]
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
    door = Door()
    role = role_of(door, [])
    each: list[Any] = [
        SimpleNamespace(
            directory_id=directory_id, is_online=is_online, found=None if epoch is None else SimpleNamespace(broker_epoch=epoch)
        )
        for directory_id, (is_online, epoch) in zip((DIRECTORY, OTHER), found, strict=True)
    ]
    directories: Any = SimpleNamespace(directories=each, cordoned_ids=[])
    partitions: Any = SimpleNamespace(incarnation_id=None)
    asyncio.run(role._register([], directories, partitions))
    registration = door.requests[0]
    assert registration.incarnation_id == partitions.incarnation_id, "partitions lead nothing before this registration"
    assert registration.previous_broker_epoch == previous_epoch
    assert registration.log_dirs == sorted(each.directory_id for each in directories.directories if each.is_online)
