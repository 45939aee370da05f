"""A client that deletes offsets of a group, or the whole group, and fetches what is left.

A group with members cannot be deleted, nor the offsets of topics that they read. So the cleaner sometimes pauses the members
until the coordinator must have evicted them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ottla.errors.codes import ErrorCode
from ottla.sim.checkers.checker import Deletion, Place
from ottla.sim.clients.client import Stage
from ottla.sim.clients.group_client import GroupClient
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)

PAUSE_S_MAX = 0.8
REST_S = 1.8
"""Longer than the session and rebalance timeouts of members."""
UNCERTAIN = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.REQUEST_TIMED_OUT)
"""The coordinator may have appended the deletion before it lost its partition: the next one may have it, or not."""


class Cleaner(GroupClient):
    """Deletes until the run is ending. `places` returns the partitions; `has_members`: members must be paused first."""

    def __init__(self, stage: Stage, group: str, places: Callable[[], list[Place]], has_members: bool) -> None:
        super().__init__(stage, f"{group}.cleaner", group)
        self._places = places
        self._has_members = has_members

    async def run(self) -> None:
        await self.step_by_step()

    def cut_off(self) -> None:
        self.stage.resting.pop(self.group, None)

    async def step(self) -> None:
        await self.pause(PAUSE_S_MAX)
        if self._has_members and self.random.random() < 0.5:
            self.note("rest", self.group)
            self.stage.resting[self.group] = None
            await asyncio.sleep(REST_S)
        chance = self.random.random()
        if chance < 0.4:
            await self._delete_offsets()
        elif chance < 0.8:
            await self._delete_group()
        if self.random.random() < 0.7:
            await self.fetch_offsets(self._places())
        self.stage.resting.pop(self.group, None)

    async def _delete_offsets(self) -> None:
        places = self._places()
        chosen = self.random.sample(places, self.random.randint(1, len(places)))
        topics: dict[str, OffsetDeleteRequestTopic] = {}
        for topic, index in chosen:
            wanted = topics.setdefault(topic.name, OffsetDeleteRequestTopic(name=topic.name))
            wanted.partitions.append(OffsetDeleteRequestPartition(partition_index=index))
        link, sent_s = await self.coordinator(), self.stage.now_s()
        deletions = {place: Deletion(self.group, place, sent_s) for place in chosen}
        for deletion in deletions.values():
            self.stage.checkers.deletion_sent(deletion)
        self.note("delete", " ".join(map(str, chosen)))
        answer = await link.request(OffsetDeleteRequest(group_id=self.group, topics=list(topics.values())), version=0)
        parts = {(topic.name, part.partition_index): part.error_code for topic in answer.topics for part in topic.partitions}
        for place, deletion in deletions.items():
            self._settle(deletion, answer.error_code or parts[place.topic.name, place.number], self.node_of(link))

    async def _delete_group(self) -> None:
        link, deletion = await self.coordinator(), Deletion(self.group, None, self.stage.now_s())
        self.stage.checkers.deletion_sent(deletion)
        self.note("delete", self.group)
        answer = await link.request(DeleteGroupsRequest(groups_names=[self.group]), version=2)
        self._settle(deletion, answer.results[0].error_code, self.node_of(link))

    def _settle(self, deletion: Deletion, code: int, node: int) -> None:
        answered_s = self.stage.now_s()
        if code == ErrorCode.NONE:
            self.note("deleted", str(deletion.place or self.group))
            self.stage.checkers.deletion_acknowledged(deletion, answered_s)
            return
        if code not in UNCERTAIN:
            self.stage.checkers.deletion_refused(deletion)
        if code == ErrorCode.GROUP_ID_NOT_FOUND:
            # An unknown group has no committed offsets.
            self.report_offsets(dict.fromkeys(self._places(), -1), deletion.sent_s, node)
        of_members = (ErrorCode.NON_EMPTY_GROUP, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC) if self._has_members else ()
        # A coordinator that is behind does not know a new partition yet.
        unknown = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,) if self.stage.is_cluster else ()
        self.explain("deletion", code, ErrorCode.GROUP_ID_NOT_FOUND, *of_members, *unknown)
