"""A member of a consumer group (KIP-848): its heartbeats report the partitions it holds, the answers assign partitions.

It releases revoked partitions at once, reports that with its next heartbeat, and takes new ones at once. After a lost answer it
sends a full heartbeat. Sometimes it is killed and returns as a new member, leaves for a while (static members), or commits for
an epoch that is over.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid, uuid_text
from ottla.sim.checkers.checker import Beat, Place, TopicPlan
from ottla.sim.clients.client import BACKOFF_S_MAX, Stage
from ottla.sim.clients.group_client import NOT_A_MEMBER, GroupClient
from ottla.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)

SESSION_TIMEOUT_MS = 1_000
HEARTBEAT_INTERVAL_MS = 100
REBALANCE_TIMEOUT_MS = 5_000
JOINING, LEAVING, LEAVING_FOR_A_WHILE = 0, -1, -2
"""Special member epochs in heartbeats."""


class ConsumerMember(GroupClient):
    """Stays in its group until the run is ending. `topics` returns the topics to subscribe to."""

    def __init__(
        self, stage: Stage, name: str, group: str, instance: str | None, topics: Callable[[], list[TopicPlan]]
    ) -> None:
        super().__init__(stage, name, group)
        self._instance = instance
        self._topics = topics
        self._member = self._new_id()
        self._epoch = JOINING
        self._held: dict[Place, None] = {}
        self._has_reported = False
        """Whether a full heartbeat was answered, so that the coordinator knows subscription and partitions."""
        self._past: list[tuple[int, str, list[Place]]] = []
        self.committed = 0

    def _new_id(self) -> str:
        return uuid_text(Uuid(self.random.randbytes(16)))

    async def run(self) -> None:
        await self.step_by_step()
        if self.random.random() < 0.5 and self._epoch > 0:
            await self._go(LEAVING)

    def cut_off(self) -> None:
        self._has_reported = False

    async def step(self) -> None:
        chance = self.random.random()
        if self._epoch == JOINING or not self._has_reported or chance < 0.6:
            await self._heartbeat()
        elif chance < 0.8:
            await self._commit(self._epoch, self._member, list(self._held))
        elif chance < 0.87:
            places = [Place(topic, index) for topic in self._topics() for index in range(topic.partitions)]
            await self.fetch_offsets(places, member=self._member, epoch=self._epoch)
        elif chance < 0.94 and self._past:
            epoch, member, places = self.random.choice(self._past)
            if (member, epoch) != (self._member, self._epoch):
                await self._commit(epoch, member, places)
        elif chance > 0.96:
            await self._begin_again()

    async def _begin_again(self) -> None:
        chance = self.random.random()
        if chance < 0.4:
            await self._go(LEAVING)
        elif chance < 0.7 and self._instance is not None:
            await self._go(LEAVING_FOR_A_WHILE)
        else:
            self.note("restart", self._member)
            self.hang_up()
        self._remember()
        self._member, self._epoch, self._held, self._has_reported = self._new_id(), JOINING, {}, False

    # Heartbeats

    async def _heartbeat(self) -> None:
        is_full = self._epoch == JOINING or not self._has_reported or self.random.random() < 0.2
        request = ConsumerGroupHeartbeatRequest(group_id=self.group, member_id=self._member, member_epoch=self._epoch)
        if is_full:
            request.instance_id = self._instance
            request.rebalance_timeout_ms = REBALANCE_TIMEOUT_MS
            request.subscribed_topic_names = [topic.name for topic in self._topics()]
            request.topic_partitions = _by_topic(list(self._held))
        elif self._instance is not None:
            request.instance_id = self._instance
        self._has_reported = False
        link, requested_s = await self.link(), self.stage.now_s()
        answer = await link.request(request, version=1)
        code = answer.error_code
        if code in NOT_A_MEMBER:
            self.note("refused", f"heartbeat {code}")
            self.stage.checkers.member_fenced(self.group, self._member)
            self._remember()
            self._epoch, self._held = JOINING, {}
        elif code:
            self.explain("ConsumerGroupHeartbeat", code, ErrorCode.UNRELEASED_INSTANCE_ID)
            await self.pause(BACKOFF_S_MAX)
        else:
            self._take(answer, requested_s)

    def _take(self, answer: object, requested_s: float) -> None:
        epoch, assignment = answer.member_epoch, answer.assignment  # type: ignore[attr-defined]  # a response
        if epoch != self._epoch:
            self._remember()
        self._epoch = epoch
        places: list[Place] | None = None
        if assignment is not None:
            known = {topic.topic_id: topic for topic in self._topics()}
            places = [Place(known[part.topic_id], index) for part in assignment.topic_partitions for index in part.partitions]
            self.note("assigned", f"epoch {epoch} {' '.join(map(str, places))}")
        beat = Beat(self.group, self._member, epoch, places, requested_s, self.stage.now_s())
        self.stage.checkers.heartbeat_answered(beat)
        self._has_reported = True
        if places is None:
            return
        gone = [place for place in self._held if place not in places]
        if gone or any(place not in self._held for place in places):
            self._remember()
            self._held = dict.fromkeys(places)
            self._has_reported = False  # the next heartbeat reports the change
        if gone:
            self.stage.checkers.given_up(self.group, self._member, gone)

    async def _go(self, how: int) -> None:
        self.stage.checkers.given_up(self.group, self._member, list(self._held))
        request = ConsumerGroupHeartbeatRequest(group_id=self.group, member_id=self._member, member_epoch=how)
        request.instance_id = self._instance
        answer = await self.ask_until_answered(request, 1)
        self.note("left", f"{self.group} {how}: {answer.error_code}")

    # Commits

    async def _commit(self, epoch: int, member: str, places: list[Place]) -> None:
        if not places:
            return
        codes = await self.commit("consumer", places, member=member, instance=self._instance, epoch=epoch)
        for code in codes.values():
            self.committed += code == ErrorCode.NONE
            if code != ErrorCode.NONE and code not in NOT_A_MEMBER:
                self.explain("OffsetCommit", code)

    def _remember(self) -> None:
        if self._epoch > 0 and self._held:
            self._past.append((self._epoch, self._member, list(self._held)))


def _by_topic(places: list[Place]) -> list[ConsumerGroupHeartbeatRequestTopicPartitions]:
    topics: dict[Uuid, ConsumerGroupHeartbeatRequestTopicPartitions] = {}
    for topic, index in places:
        part = topics.setdefault(topic.topic_id, ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic.topic_id))
        part.partitions.append(index)
    return list(topics.values())
