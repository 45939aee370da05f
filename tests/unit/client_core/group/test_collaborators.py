"""The protocols of a membership's collaborators: the client's real machines and settings have all of it."""

from __future__ import annotations

import inspect

from tests.support.shards.fake_metadata import FakeMetadata
from tests.support.shards.group_world import ClientSettings

from ottla.client_core.coordinators import CoordinatorFinder, CoordinatorKind
from ottla.client_core.group.base_member import Coordinator, GroupSettings, MetadataView
from ottla.client_core.metadata import Metadata, Node, PartitionInfo, TopicInfo
from ottla.config.client.build import consumer_settings
from ottla.ids import ZERO_UUID

SETTINGS = ClientSettings()


def names_of(protocol: type) -> list[str]:
    return [name for name in vars(protocol) if not name.startswith("_")]


def lacks(thing: object, protocol: type) -> list[str]:
    """The names of the protocol that `thing` does not have. Its calls must take the protocol's positional arguments."""
    missing = [name for name in names_of(protocol) if not hasattr(thing, name)]
    for name in set(names_of(protocol)).difference(missing):
        declared = vars(protocol)[name]
        if inspect.isfunction(declared):
            arguments = [None] * (len(inspect.signature(declared).parameters) - 1)
            inspect.signature(getattr(thing, name)).bind(*arguments)
    return missing


def metadata() -> Metadata:
    return Metadata(SETTINGS, lambda limit: limit // 2)


def test_metadata_is_a_metadata_view() -> None:
    view: MetadataView = metadata()
    assert lacks(view, MetadataView) == []
    fake: MetadataView = FakeMetadata()
    assert lacks(fake, MetadataView) == []


def test_topics_partitions_and_nodes_have_what_is_read_of_them() -> None:
    topic = TopicInfo("t", ZERO_UUID, False, (PartitionInfo(0, 1, 1, (1,)),))
    assert (topic.name, topic.id, topic.is_internal, topic.partitions[0].replicas) == ("t", ZERO_UUID, False, (1,))
    assert Node(1, "h", 1).rack is None


def test_coordinator_finder_is_a_coordinator() -> None:
    finder: Coordinator = CoordinatorFinder(metadata(), CoordinatorKind.GROUP, "g", SETTINGS, lambda limit: limit // 2)
    assert lacks(finder, Coordinator) == []
    assert finder.node() is None


def test_settings_of_a_consumer_are_group_settings() -> None:
    settings: GroupSettings = consumer_settings("a:1", {"group.id": "g", "group.instance.id": "i", "client.rack": "east"})
    assert lacks(settings, GroupSettings) == []
    assert (settings.group_id, settings.group_instance_id, settings.client_rack) == ("g", "i", "east")
    assert (settings.session_timeout_ms, settings.heartbeat_interval_ms) == (45_000, 3_000)
    assert lacks(SETTINGS, GroupSettings) == [], "nor do the settings of the tests lack anything"


def test_missing_names_are_found() -> None:
    assert lacks(object(), Coordinator) == ["error", "want", "is_ready", "node", "connected", "lost"]
