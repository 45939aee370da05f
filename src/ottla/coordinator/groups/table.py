"""GroupTable: the groups of one shard, of any protocol, with the settings and timers that its decisions share."""

from __future__ import annotations

from collections.abc import Callable

from ottla.coordinator.groups.group import Group
from ottla.coordinator.groups.memory import MemberMemory
from ottla.coordinator.groups.settings import GroupSettings
from ottla.coordinator.groups.topics import Topics
from ottla.coordinator.id_limit import IdLimit
from ottla.coordinator.timers import Timers
from ottla.ids import Uuid


class GroupTable:
    """One shard's groups by id, with its timers. The runtime replaces `settings` and `topics` when they change."""

    __slots__ = ("by_id", "emptied_ms", "limit", "memory", "new_uuid", "settings", "timers", "topics")

    def __init__(self, settings: GroupSettings, topics: Topics, new_uuid: Callable[[], Uuid]) -> None:
        self.settings = settings
        self.topics = topics
        self.new_uuid = new_uuid
        self.by_id: dict[str, Group] = {}
        self.emptied_ms: dict[str, int] = {}
        """Consumer group → the wall time at which its last member left. No record has it: it is unknown after a load."""
        self.limit = IdLimit()
        self.memory = MemberMemory()
        """The runtime sets a limit and a memory for all its shards; without a runtime there is no limit."""
        self.timers = Timers()
        """Names are tuples that begin with a word of their owner: ("classic-session", group id, member id), ("offsets",) …"""
