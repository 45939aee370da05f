"""Programs in groups: members of the classic and the consumer protocol, and programs that commit without membership.

They run the asyncio consumer that users run. A member polls, commits, asks for committed offsets, is killed and starts again,
leaves, and rests. Sometimes it commits for a generation or epoch that is over, like a process that was suspended; no client of
ours does that, so these commits are requests of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any

from ottla.client.consumer.asynchronous import Consumer
from ottla.client.consumer.core import ConsumerCore
from ottla.client.consumer.record import ConsumerRecord
from ottla.client_core.group.consumer_member import JOIN_EPOCH
from ottla.client_core.machine import Request
from ottla.errors import CommitFailedError, KafkaError, RetriableCommitFailedError
from ottla.errors import TimeoutError as KafkaTimeoutError
from ottla.errors.codes import ErrorCode, error_name
from ottla.ids import TopicPartition, Uuid
from ottla.sim.checkers.checker import Assigned, Beat, Commit, Place, TopicPlan
from ottla.sim.clients.client import BACKOFF_S_MAX, ClientObserver, LinkError, Stage
from ottla.sim.clients.consumer import open_consumer, report_seen
from ottla.sim.clients.group_client import NOT_A_MEMBER, PAUSE_S_MAX, GroupClient
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


SESSION_TIMEOUT_MS = 1_000
HEARTBEAT_INTERVAL_MS = 100
MAX_POLL_INTERVAL_MS = 5_000
"""Also the rebalance timeout."""
ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
POLL_S = 0.1
OTHERS = (ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNRELEASED_INSTANCE_ID)
"""Errors that end a static member, because another has its group.instance.id."""


class Committer(GroupClient):
    """Commits and asks for offsets of a group without being a member, until the run is ending."""

    protocol = "simple"

    def __init__(self, stage: Stage, name: str, group: str, topics: Callable[[], list[TopicPlan]]) -> None:
        super().__init__(stage, name, group)
        self._topics = topics
        self._consumer: Consumer[bytes, bytes] | None = None
        self._core: ConsumerCore | None = None
        self._observer: GroupObserver | None = None

    async def run(self) -> None:
        while not self.stage.is_ending:
            if self.group in self.stage.resting:
                self._kill()
            else:
                try:
                    await self.act(self._consumer or self._start())
                except (KafkaError, LinkError) as error:
                    await self._take_error(error)
            await self.pause(PAUSE_S_MAX)
        await self._finish()

    async def act(self, consumer: Consumer[bytes, bytes]) -> None:
        """One random action."""
        if self.random.random() < 0.3:
            await consumer.committed(self._chosen(self._partitions()))
        else:
            await self.commit_numbers(consumer, self._chosen(self._partitions()))

    async def _finish(self) -> None:
        self._kill()

    # The process

    def _start(self) -> Consumer[bytes, bytes]:
        consumer = open_consumer(self, **self.settings())
        self._observer = GroupObserver(self, self.protocol, self._topics)
        self._core = consumer._core
        self._core.parts.runner.observer = self._observer
        self._subscribe(consumer)
        self._consumer = consumer
        return consumer

    def settings(self) -> dict[str, Any]:
        """The settings of the consumer."""
        return {
            "group_id": self.group,
            "enable_auto_commit": False,
            "default_api_timeout_ms": 2_000,
            "metadata_max_age_ms": 2_000,
            "auto_offset_reset": "earliest",
        }

    def _subscribe(self, consumer: Consumer[bytes, bytes]) -> None:
        pass

    def _kill(self) -> None:
        if self._core is not None:
            self._core.finish_close()
            self._consumer = self._core = None
            self.hang_up()
            self.die()

    # Offsets

    def _partitions(self) -> list[TopicPartition]:
        return [TopicPartition(topic.name, number) for topic in self._topics() for number in range(topic.partitions)]

    def _chosen(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        return self.random.sample(partitions, self.random.randint(1, len(partitions)))

    async def commit_numbers(self, consumer: Consumer[bytes, bytes], partitions: list[TopicPartition]) -> None:
        """Commit a unique offset for each partition."""
        await consumer.commit({each: next(self.stage.numbers) for each in partitions})

    async def _take_error(self, error: KafkaError | LinkError) -> None:
        """What an action raised. Errors that nothing explains are violations."""
        self.note("raised", type(error).__name__)
        if isinstance(error, KafkaError):
            passing = (KafkaTimeoutError, CommitFailedError, RetriableCommitFailedError)
            if not isinstance(error, passing):
                self.explain("a call of the consumer", error.code, *NOT_A_MEMBER, *OTHERS, ErrorCode.REBALANCE_IN_PROGRESS)
            if error.code in OTHERS:
                self._kill()
        await self.pause(BACKOFF_S_MAX)


class Member(Committer):
    """A member of a group. `instance` is its group.instance.id, if it has one."""

    def __init__(
        self,
        stage: Stage,
        name: str,
        group: str,
        instance: str | None,
        topics: Callable[[], list[TopicPlan]],
        *,
        is_classic: bool,
        is_mixed: bool,
    ) -> None:
        super().__init__(stage, name, group, topics)
        self.protocol = "classic" if is_classic and not is_mixed else "consumer"
        self._instance = instance
        self._is_classic = is_classic
        self._past: list[tuple[int, str, list[Place]]] = []

    def settings(self) -> dict[str, Any]:
        settings = super().settings() | {"group_instance_id": self._instance, "max_poll_interval_ms": MAX_POLL_INTERVAL_MS}
        if not self._is_classic:
            return settings | {"group_protocol": "consumer"}
        assignor = Random(f"{self.stage.seed}/{self.group}/assignor").choice(ASSIGNORS)
        return settings | {
            "group_protocol": "classic",
            "session_timeout_ms": SESSION_TIMEOUT_MS,
            "heartbeat_interval_ms": HEARTBEAT_INTERVAL_MS,
            "partition_assignment_strategy": assignor,
        }

    def _subscribe(self, consumer: Consumer[bytes, bytes]) -> None:
        # Committed offsets are numbers that no log has, so the partitions are not read.
        consumer.subscribe([topic.name for topic in self._topics()], on_assigned=lambda added: consumer.pause(*sorted(added)))

    def _kill(self) -> None:
        if self._consumer is not None and self._observer is not None:
            self._past += self._observer.past
        super()._kill()

    async def _finish(self) -> None:
        if self.random.random() < 0.5 and self._consumer is not None:
            await self._consumer.close(5.0)
        self._kill()

    async def act(self, consumer: Consumer[bytes, bytes]) -> None:
        await consumer.poll(self.random.uniform(0, POLL_S))
        chance = self.random.random()
        if chance < 0.4:
            held = sorted(consumer.assignment())
            if held:
                await self.commit_numbers(consumer, held)
        elif chance < 0.48:
            await consumer.committed(self._partitions())
        elif chance < 0.55:
            await self._commit_late(consumer)
        elif chance > 0.96:
            await self._restart(consumer)

    async def _restart(self, consumer: Consumer[bytes, bytes]) -> None:
        chance = self.random.random()
        if chance < 0.4:
            await consumer.close(2.0, leave=True)
        elif chance < 0.7:
            await consumer.close(2.0)  # a static member goes for a while
        else:
            self.note("restart", consumer.group_metadata().member_id)
        self._kill()

    async def _commit_late(self, consumer: Consumer[bytes, bytes]) -> None:
        """Commit for a generation or epoch that is over, or as a member that this program was before."""
        assert self._observer is not None
        past = [*self._past, *self._observer.past[:-1]]
        now = consumer.group_metadata()
        late = [each for each in past if each[:2] != (now.generation_id, now.member_id) and each[2]]
        if not late:
            return
        epoch, member, places = self.random.choice(late)
        codes = await self.commit(self.protocol, places, member=member, instance=self._instance, epoch=epoch)
        for code in codes.values():
            if code != ErrorCode.NONE and code not in NOT_A_MEMBER:
                self.explain("OffsetCommit", code, ErrorCode.REBALANCE_IN_PROGRESS)


class ReadingMember(Member):
    """A member that reads, with automatic commits. It is killed, or closes, with records that it got and did not commit."""

    reports_offsets = False

    def settings(self) -> dict[str, Any]:
        return super().settings() | {"enable_auto_commit": True, "auto_commit_interval_ms": 100}

    def _subscribe(self, consumer: Consumer[bytes, bytes]) -> None:
        history = self.stage.history
        names = [topic.name for topic in self._topics()]
        consumer.subscribe(names, on_assigned=lambda added: history.assigned(self.name, sorted(added), self.group))

    async def act(self, consumer: Consumer[bytes, bytes]) -> None:
        self._report(await consumer.poll(self.random.uniform(0, POLL_S), self.random.randint(1, 20)))
        chance = self.random.random()
        if chance < 0.05:
            await consumer.commit()
        elif chance > 0.95:
            await self._restart(consumer)

    def hang_up(self) -> None:
        """Take what was fetched: it may not be there any more when the connections are back."""
        super().hang_up()
        while self._core is not None and (records := self._core.reader.take(1 << 30)):
            self._report(records)

    def _report(self, records: Sequence[ConsumerRecord[Any, Any]]) -> None:
        topics = {topic.name: topic for topic in self._topics()}
        partitions = {TopicPartition(record.topic, record.partition): None for record in records}
        places = {each: Place(topics[each.topic], each.partition) for each in partitions}
        for place, found in report_seen(self, records, places, is_committed=False, group=self.group).items():
            self.stage.checkers.handed_out(self.group, place, found)
