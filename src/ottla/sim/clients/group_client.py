"""The base class of clients that use a coordinator: finds it, commits and fetches offsets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ottla.errors.codes import ErrorCode, error_name
from ottla.ids import Uuid
from ottla.link import Link
from ottla.sim.checkers.checker import Commit, Deletion, Place, Violation
from ottla.sim.clients.client import BACKOFF_S_MAX, Client, LinkError, Stage
from ottla.wire.messages.delete_groups import DeleteGroupsRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics

GROUP, TRANSACTION = 0, 1
"""Kinds of coordinators."""
UNAVAILABLE = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.REQUEST_TIMED_OUT,
)
"""Errors of a coordinator that is temporarily unavailable."""
NOT_A_MEMBER = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.STALE_MEMBER_EPOCH,
    ErrorCode.GROUP_ID_NOT_FOUND,
)
"""Errors that refuse a commit: it was not written and never will be."""
PATIENCE_S = 120.0
"""Longer than all lives of a node together plus the largest clock error."""
PAUSE_S_MAX = 0.1
TOPIC_IDS_FROM = 10


class GroupClient(Client):
    """A client of one group, or of one transactional id."""

    reports_offsets = True
    """Whether the checkers follow the offsets of its group. That needs offsets that no two commits share."""

    def __init__(self, stage: Stage, name: str, group: str) -> None:
        super().__init__(stage, name)
        self.group = group

    async def find_coordinator(self, kind: int, key: str) -> None:
        """Find a coordinator, with retries; this also creates its topic. Raises `LinkError` if there is no answer."""
        while True:
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
            found = (await self.ask(request, 4)).coordinators[0]
            if found.error_code == ErrorCode.NONE:
                self.target = found.host if self.stage.is_cluster else None
                return
            self.explain("FindCoordinator", found.error_code)
            await self.pause(BACKOFF_S_MAX)

    async def step_by_step(self) -> None:
        """Find the coordinator of the group, then call `step` until the run is ending."""
        is_found = False
        while not self.stage.is_ending:
            try:
                if not is_found or (self.stage.is_cluster and self.target is None):
                    await self.find_coordinator(GROUP, self.group)
                    is_found = True
                if self.group not in self.stage.resting:
                    await self.step()
            except LinkError as error:
                self.note("cut off", type(error).__name__)
                self.cut_off()
                await self.pause(BACKOFF_S_MAX)
            await self.pause(PAUSE_S_MAX)

    async def step(self) -> None:
        """One random action of the client."""
        raise NotImplementedError

    def cut_off(self) -> None:
        """A step ended without an answer."""

    def explain(self, what: str, code: int, *expected: int) -> None:
        """Note an error in the trace. One that is neither temporary nor expected is a violation."""
        self.note("refused", f"{what} {error_name(code)}")
        if code in UNAVAILABLE:
            self.target = None  # another node may be the coordinator
        if code not in UNAVAILABLE and code not in expected and not self.stage.is_disk_broken:
            raise Violation(f"{self.name}: {what} was answered with {error_name(code)}, which nothing explains")

    def check_patience(self, what: str, begun_s: float) -> None:
        """Raise `Violation` if a request has failed for longer than `PATIENCE_S`, also across kills of the node."""
        if self.stage.now_s() - begun_s > PATIENCE_S:
            raise Violation(f"{self.name}: {what} has been refused or not answered for {PATIENCE_S:g} s")

    async def coordinator(self) -> Link:
        """A connection to the coordinator of the group, if the last one found still is. Raises `LinkError`."""
        if self.stage.is_cluster and self.target is None:
            await self.find_coordinator(GROUP, self.group)
        return await self.link()

    # Offsets

    async def commit(
        self, protocol: str, places: list[Place], *, member: str = "", instance: str | None = None, epoch: int = -1
    ) -> dict[Place, int]:
        """Commit a unique offset for each of `places`. Returns the error codes."""
        link = await self.coordinator()
        offsets = {place: next(self.stage.numbers) for place in places}
        made = Commit(self.group, protocol, member, instance, epoch, offsets, self.stage.now_s())
        self.stage.checkers.commit_sent(made)
        self.note("commit", f"{self.group} epoch {epoch} " + " ".join(f"{place}@{at}" for place, at in offsets.items()))
        answer = await link.request(_commit_request(made), version=TOPIC_IDS_FROM)
        parts = {(each.topic_id, part.partition_index): part for each in answer.topics for part in each.partitions}
        codes = {place: parts[place.topic.topic_id, place.number].error_code for place in places}
        done = [place for place in places if codes[place] == ErrorCode.NONE]
        self.stage.checkers.commit_acknowledged(made, done, self.stage.now_s())
        self.stage.checkers.commit_refused(made, [place for place in places if codes[place] in NOT_A_MEMBER])
        self.note("committed", " ".join(f"{place}:{error_name(code)}" for place, code in codes.items()))
        return codes

    async def fetch_offsets(self, places: list[Place]) -> dict[Place, int] | None:
        """The stable committed offsets; None if the coordinator refuses for now."""
        link, requested_s = await self.coordinator(), self.stage.now_s()
        topics: dict[Uuid, OffsetFetchRequestTopics] = {}
        for topic, index in places:
            asked = topics.setdefault(topic.topic_id, OffsetFetchRequestTopics(topic_id=topic.topic_id))
            asked.partition_indexes.append(index)
        group = OffsetFetchRequestGroup(group_id=self.group, topics=list(topics.values()))
        request = OffsetFetchRequest(groups=[group], require_stable=True)
        answer = (await link.request(request, version=TOPIC_IDS_FROM)).groups[0]
        if answer.error_code:
            self.explain("OffsetFetch", answer.error_code)
            return None
        by_key = {(each.topic_id, part.partition_index): part for each in answer.topics for part in each.partitions}
        found: dict[Place, int] = {}
        for place in places:
            part = by_key[place.topic.topic_id, place.number]
            if part.error_code:
                self.explain("OffsetFetch", part.error_code, ErrorCode.UNSTABLE_OFFSET_COMMIT)
                return None
            found[place] = part.committed_offset
        self.note("offsets", f"{self.group} " + " ".join(f"{place}@{at}" for place, at in found.items()))
        if self.reports_offsets:
            self.report_offsets(found, requested_s, self.node_of(link))
        return found

    def report_offsets(self, found: dict[Place, int], requested_s: float, node: int) -> bool:
        """Tell the checkers the committed offsets that a node has answered with. False: it was not the coordinator any more."""
        is_deposed = not self.stage.is_coordinator(self.group, node, requested_s)
        if is_deposed:
            self.note("deposed", f"{node} is not the coordinator of {self.group} any more")
        self.stage.checkers.offsets_answered(self.group, found, requested_s, self.stage.now_s(), is_deposed)
        return not is_deposed

    def node_of(self, link: Link) -> int:
        """The id of the node that a connection goes to."""
        return self.stage.node_ids[link.host]

    async def fetch_offsets_until_answered(self, places: list[Place]) -> dict[Place, int]:
        """Like `fetch_offsets`, but retries until it succeeds."""
        begun_s = self.stage.now_s()
        while places:
            self.check_patience("OffsetFetch", begun_s)
            try:
                await self.find_coordinator(GROUP, self.group)
                if (found := await self.fetch_offsets(places)) is not None:
                    return found
            except LinkError as error:
                self.note("cut off", type(error).__name__)
            await self.pause(BACKOFF_S_MAX)
        return {}


def _commit_request(commit: Commit) -> OffsetCommitRequest:
    topics: dict[Uuid, OffsetCommitRequestTopic] = {}
    for (topic, index), offset in commit.offsets.items():
        wanted = topics.setdefault(topic.topic_id, OffsetCommitRequestTopic(topic_id=topic.topic_id))
        wanted.partitions.append(OffsetCommitRequestPartition(partition_index=index, committed_offset=offset))
    return OffsetCommitRequest(
        group_id=commit.group,
        generation_id_or_member_epoch=commit.epoch,
        member_id=commit.member,
        group_instance_id=commit.instance,
        topics=list(topics.values()),
    )


CLEANER_PAUSE_S_MAX = 0.8
REST_S = 1.8
"""Longer than the session and rebalance timeouts of members."""
UNCERTAIN = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.REQUEST_TIMED_OUT)
"""The coordinator may have appended the deletion before it lost its partition: the next one may have it, or not."""


class Cleaner(GroupClient):
    """A client that deletes offsets of a group, or the whole group, and fetches what is left.

    A group with members cannot be deleted, nor the offsets of topics that they read. So the cleaner sometimes pauses the
    members until the coordinator must have evicted them.

    Deletes until the run is ending. `places` returns the partitions; `has_members`: members must be paused first.
    """

    def __init__(self, stage: Stage, group: str, places: Callable[[], list[Place]], has_members: bool) -> None:
        super().__init__(stage, f"{group}.cleaner", group)
        self._places = places
        self._has_members = has_members

    async def run(self) -> None:
        await self.step_by_step()

    def cut_off(self) -> None:
        self.stage.resting.pop(self.group, None)

    async def step(self) -> None:
        await self.pause(CLEANER_PAUSE_S_MAX)
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
