"""The groups of one shard, and what all that work on them share. Which kinds there are is not this file's business."""

from __future__ import annotations

from collections.abc import Callable

from ottla.coordinator.groups.group import Group
from ottla.coordinator.groups.memory import MemberMemory
from ottla.coordinator.groups.settings import GroupSettings
from ottla.coordinator.groups.topics import Topics
from ottla.coordinator.timers import Timers
from ottla.ids import Uuid


class GroupTable:
    """One shard's groups by their ids, with its clockwork. The host swaps `settings` and `topics` when they change."""

    __slots__ = ("by_id", "memory", "new_uuid", "settings", "timers", "topics")

    def __init__(self, settings: GroupSettings, topics: Topics, new_uuid: Callable[[], Uuid]) -> None:
        self.settings = settings
        self.topics = topics
        self.new_uuid = new_uuid
        self.by_id: dict[str, Group] = {}
        self.memory = MemberMemory()
        """The host's, for all its shards; without a host there is no limit."""
        self.timers = Timers()
        """Names are tuples that begin with the room's word: ("session", group id, member id), ("offsets",) …"""
