"""Programs in groups: members of the classic and the consumer protocol, and programs that commit without membership.

They run the asyncio consumer that users run. A member polls, commits, asks for committed offsets, is killed and starts again,
leaves, and rests. Sometimes it commits for a generation or epoch that is over, like a process that was suspended; no client of
ours does that, so these commits are requests of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from ottla.client.consumer.asynchronous import Consumer
from ottla.client.consumer.core import ConsumerCore
from ottla.client.consumer.record import ConsumerRecord
from ottla.errors import CommitFailedError, KafkaError, RetriableCommitFailedError
from ottla.errors import TimeoutError as KafkaTimeoutError
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition
from ottla.sim.checkers.checker import Place, TopicPlan
from ottla.sim.clients.client import BACKOFF_S_MAX, LinkError, Stage
from ottla.sim.clients.consumer import open_consumer, report_seen
from ottla.sim.clients.group_client import NOT_A_MEMBER, PAUSE_S_MAX, GroupClient
from ottla.sim.clients.group_observer import GroupObserver

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


class Reader(Member):
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
