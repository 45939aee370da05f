"""What the checkers learn from the requests of a member: generations, epochs, assignments, commits and committed offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ottla.client_core.group.consumer_heartbeat import JOIN_EPOCH
from ottla.client_core.machine import Request
from ottla.errors.codes import ErrorCode, error_name
from ottla.ids import Uuid
from ottla.sim.checkers.checker import Assigned, Beat, Commit, Place, TopicPlan
from ottla.sim.clients.group_client import NOT_A_MEMBER, GroupClient
from ottla.sim.clients.observer import ClientObserver
from ottla.wire.base import Message
from ottla.wire.consumer_protocol import read_assignment, read_subscription
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from ottla.wire.messages.heartbeat import HeartbeatRequest
from ottla.wire.messages.join_group import JoinGroupRequest
from ottla.wire.messages.leave_group import LeaveGroupRequest
from ottla.wire.messages.offset_commit import OffsetCommitRequest
from ottla.wire.messages.offset_fetch import OffsetFetchRequest
from ottla.wire.messages.sync_group import SyncGroupRequest

EPOCHS_KEPT = 20


class GroupObserver(ClientObserver):
    """Observes one process. `protocol` is that of the group, as in `Commit`; `topics` returns the topics of the run."""

    def __init__(self, client: GroupClient, protocol: str, topics: Callable[[], list[TopicPlan]]) -> None:
        super().__init__(client)
        self.past: list[tuple[int, str, list[Place]]] = []
        """Generations or epochs of this member, with its id and its partitions in them."""
        self._group, self._reporter = client.group, client
        self._reports_offsets = client.reports_offsets
        self._protocol = protocol
        self._topics = topics
        self._held: dict[Place, None] = {}
        """What the member may hold: it was assigned, and the member has not said that it has released it."""
        self._target: dict[Place, None] = {}
        self._is_leaving = False
        """Whether the member has said that it leaves. Answers to what it sent before mean nothing any more."""
        self._commits: dict[int, Commit] = {}
        self._tried: dict[tuple[Place, int], None] = {}
        """Offsets that were sent before and may be committed, though a later attempt was refused."""
        self._asked: dict[int, object] = {}
        """What served the group where a Heartbeat was sent, when it was sent."""

    # Requests

    def sent(self, request: Request, message: Message, version: int) -> None:
        if isinstance(message, HeartbeatRequest):
            self._asked[id(message)] = self.stage.serving_shard(self._group, request.node)
        super().sent(request, message, version)

    def on_sent(self, message: Any) -> None:
        if isinstance(message, JoinGroupRequest):
            self._is_leaving = False
            if message.member_id:
                owned = read_subscription(bytes(message.protocols[0].metadata)).owned_partitions
                self._release(message.member_id, self._by_name((each.topic, each.partitions) for each in owned))
        elif isinstance(message, LeaveGroupRequest):
            self._is_leaving = True
            self._release(message.members[0].member_id, [])
        elif isinstance(message, ConsumerGroupHeartbeatRequest):
            self._is_leaving = message.member_epoch < 0 or (self._is_leaving and message.member_epoch > 0)
            if message.member_epoch < 0:
                self._release(message.member_id, [])
            elif message.topic_partitions is not None:
                held = self._by_id((each.topic_id, each.partitions) for each in message.topic_partitions)
                if message.member_epoch == JOIN_EPOCH:
                    self._target = {}  # it was fenced, and the answer to a commit may have said so
                self._release(message.member_id, [*held, *self._target])
        elif isinstance(message, OffsetCommitRequest) and self._reports_offsets:
            self._commit_sent(message)

    def _release(self, member: str, kept: list[Place]) -> None:
        gone = [place for place in self._held if place not in kept]
        for place in gone:
            del self._held[place]
        if gone:
            self.stage.checkers.given_up(self._group, member, gone)

    def _commit_sent(self, message: OffsetCommitRequest) -> None:
        offsets = {
            self._place(topic.name, topic.topic_id, part.partition_index): part.committed_offset
            for topic in message.topics
            for part in topic.partitions
        }
        member, epoch = message.member_id, message.generation_id_or_member_epoch
        made = Commit(self._group, self._protocol, member, message.group_instance_id, epoch, offsets, self.stage.now_s())
        self._commits[id(message)] = made
        self.stage.checkers.commit_sent(made)
        listed = " ".join(f"{place}@{at}" for place, at in offsets.items())
        self.client.note("commit", f"{self._group} epoch {epoch} {listed}")

    def on_failure(self, message: Any) -> None:
        self._asked.pop(id(message), None)
        if isinstance(message, OffsetCommitRequest) and self._reports_offsets:
            self._tried.update(dict.fromkeys(self._commits.pop(id(message)).offsets.items()))

    # Answers

    def on_answer(self, request: Request, message: Any, response: Any, sent_s: float) -> None:
        if isinstance(message, OffsetCommitRequest | OffsetFetchRequest) and not self._reports_offsets:
            return
        asked = self._asked.pop(id(message), None)
        if isinstance(message, OffsetCommitRequest):
            self._committed(self._commits.pop(id(message)), response)
        elif isinstance(message, OffsetFetchRequest):
            self._offsets_answered(request.node, response, sent_s)
        elif isinstance(message, JoinGroupRequest | SyncGroupRequest | HeartbeatRequest | ConsumerGroupHeartbeatRequest):
            if response.error_code:
                kind = type(message).__name__.removesuffix("Request")
                self.client.note("refused", f"{kind} {error_name(response.error_code)}")
                if response.error_code in NOT_A_MEMBER:
                    self._fenced(message.member_id)
            elif self._is_leaving:
                return
            elif isinstance(message, SyncGroupRequest):
                self._synced(request, message, response, sent_s)
            elif isinstance(message, HeartbeatRequest):
                if self._protocol == "consumer":
                    beat = Beat(self._group, message.member_id, message.generation_id, None, sent_s, self.stage.now_s())
                    # Only what served all the time has heard of it: while a group is loaded, Heartbeats succeed for everyone.
                    is_served = asked is not None and asked is self.stage.serving_shard(self._group, request.node)
                    self._report_beat(beat._replace(is_heard=is_served), request)
            elif isinstance(message, ConsumerGroupHeartbeatRequest):
                self._beat_answered(request, message, response, sent_s)

    def _fenced(self, member: str) -> None:
        self.stage.checkers.member_fenced(self._group, member)
        self._held, self._target = {}, {}

    def _synced(self, request: Request, message: SyncGroupRequest, response: Any, sent_s: float) -> None:
        data = bytes(response.assignment)
        found = read_assignment(data).assigned_partitions if data else []
        places = self._by_name((each.topic, each.partitions) for each in found)
        generation, member, now_s = message.generation_id, message.member_id, self.stage.now_s()
        self._assigned(generation, member, places)
        if self._protocol == "consumer":
            self._report_beat(Beat(self._group, member, generation, places, sent_s, now_s, is_joined=True), request)
        else:
            assigned = Assigned(self._group, generation, member, message.group_instance_id, places, sent_s, now_s)
            self.stage.checkers.generation_assigned(assigned)

    def _beat_answered(
        self,
        request: Request,
        message: ConsumerGroupHeartbeatRequest,
        response: ConsumerGroupHeartbeatResponse,
        sent_s: float,
    ) -> None:
        places: list[Place] | None = None
        if response.assignment is not None:
            places = self._by_id((each.topic_id, each.partitions) for each in response.assignment.topic_partitions)
            self._assigned(response.member_epoch, message.member_id, places)
        is_joined = message.member_epoch == JOIN_EPOCH
        beat = Beat(self._group, message.member_id, response.member_epoch, places, sent_s, self.stage.now_s(), is_joined)
        self._report_beat(beat, request)

    def _report_beat(self, beat: Beat, request: Request) -> None:
        is_coordinator = self.stage.is_coordinator(self._group, request.node, beat.requested_s)
        self.stage.checkers.heartbeat_answered(beat._replace(is_heard=beat.is_heard and is_coordinator))

    def _assigned(self, epoch: int, member: str, places: list[Place]) -> None:
        self.client.note("assigned", f"epoch {epoch} {' '.join(map(str, places))}")
        self.past = [*self.past[-EPOCHS_KEPT:], (epoch, member, places)]
        self._target = dict.fromkeys(places)
        self._held |= self._target

    def _committed(self, commit: Commit, response: Any) -> None:
        codes = {
            self._place(topic.name, topic.topic_id, part.partition_index): part.error_code
            for topic in response.topics
            for part in topic.partitions
        }
        self.client.note("committed", " ".join(f"{place}:{error_name(code)}" for place, code in codes.items()))
        done = [place for place, code in codes.items() if code == ErrorCode.NONE]
        self.stage.checkers.commit_acknowledged(commit, done, self.stage.now_s())
        refused = [place for place, code in codes.items() if code in NOT_A_MEMBER]
        untried = [place for place in refused if (place, commit.offsets[place]) not in self._tried]
        self.stage.checkers.commit_refused(commit, untried)
        if any(codes[place] != ErrorCode.STALE_MEMBER_EPOCH for place in refused):
            self._fenced(commit.member)  # the member learns of it from its commit, and joins again

    def _offsets_answered(self, node: int, response: Any, sent_s: float) -> None:
        group = response.groups[0]
        parts = [(topic, part) for topic in group.topics for part in topic.partitions]
        if group.error_code or any(part.error_code for _, part in parts):
            self.client.note("refused", f"OffsetFetch {error_name(group.error_code or parts[0][1].error_code)}")
            return
        found = {self._place(topic.name, topic.topic_id, part.partition_index): part.committed_offset for topic, part in parts}
        self.client.note("offsets", f"{self._group} " + " ".join(f"{place}@{at}" for place, at in found.items()))
        self._reporter.report_offsets(found, sent_s, node)

    # Places

    def _place(self, name: str, topic_id: Uuid, number: int) -> Place:
        return Place(next(topic for topic in self._topics() if topic.name == name or topic.topic_id == topic_id), number)

    def _by_name(self, topics: Iterable[tuple[str, list[int]]]) -> list[Place]:
        known = {topic.name: topic for topic in self._topics()}
        return [Place(known[name], number) for name, numbers in topics for number in numbers]

    def _by_id(self, topics: Iterable[tuple[Uuid, list[int]]]) -> list[Place]:
        known = {topic.topic_id: topic for topic in self._topics()}
        return [Place(known[topic_id], number) for topic_id, numbers in topics for number in numbers]
