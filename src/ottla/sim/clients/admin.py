"""The admin: creates and deletes topics, adds partitions, changes settings, deletes records, raises transaction.version.

It uses the asyncio Admin that users run. It makes one change at a time and retries until the outcome is known:
TOPIC_ALREADY_EXISTS after a lost answer means that the topic was created. So checkers get only changes that certainly took
effect.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from ottla.client.admin.aio import Admin as RealAdmin
from ottla.client.admin.results import Results
from ottla.client.admin.topics import NewTopic
from ottla.errors import KafkaError, UnreachableError
from ottla.errors.codes import ErrorCode, error_name
from ottla.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC, TopicPartition, Uuid
from ottla.metadata.features import SUPPORTED_FEATURES, TRANSACTION_VERSION
from ottla.sim.checkers.checker import Place, TopicPlan, Violation
from ottla.sim.clients.client import BACKOFF_S_MAX, CLIENT_SETTINGS, Client, Stage
from ottla.sim.machine import DIRECTORIES
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

NODE_ID = 1
RETRIED = (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_CONTROLLER, ErrorCode.NETWORK_EXCEPTION)
RETRIED_IN_CLUSTERS = (
    *RETRIED,
    ErrorCode.INVALID_REPLICATION_FACTOR,  # too few brokers are unfenced
    ErrorCode.BROKER_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,  # a broker that is behind does not know the topic yet
    ErrorCode.LEADER_NOT_AVAILABLE,
)
PATIENCE_S = 60.0
Call = Callable[[RealAdmin], Awaitable[Results[Any, Any]]]
TEMPORARY_TOPICS = ("passing0", "passing1", "passing2")
"""Names of temporary topics, which are created and deleted several times."""


class Admin(Client):
    """Creates the topics of the plan and temporary ones, and changes them during the run."""

    def __init__(self, stage: Stage, pause_s_max: float, has_coordinators: bool = False, raises_version: bool = False) -> None:
        super().__init__(stage, "admin")
        self._has_coordinators = has_coordinators
        self._raises_version = raises_version
        self.topics: list[TopicPlan] = []
        """The topics of the plan, which are never deleted."""
        self.temporary: list[TopicPlan] = []
        self.on_made: Callable[[TopicPlan], None] | None = None
        """Called with every temporary topic that was created."""
        self._deleted: dict[Uuid, None] = {}
        self._pause_s_max = pause_s_max
        self._client: RealAdmin | None = None

    async def run(self) -> None:
        steps = [
            self._create_temporary,
            self._create_temporary,
            self._delete_temporary,
            self._grow,
            self._configure,
        ]
        if not self.stage.is_cluster:
            steps.append(self._move)
        if not self._has_coordinators:
            steps.append(self._delete_records)
        elif not self.stage.is_cluster:
            steps.append(self._move)
        if self._raises_version:
            steps += [self._raise_version] * 3
        await self.pause(self._pause_s_max)
        while not self.stage.is_ending:
            await self.random.choice(steps)()
            await self.pause(self._pause_s_max)
        if self._client is not None:
            await self._client.close()

    def places(self) -> list[Place]:
        """Every partition of the plan's topics."""
        return [Place(topic, index) for topic in self.topics for index in range(topic.partitions)]

    # Steps

    async def make(self, name: str, partitions: int, configs: dict[str, str]) -> TopicPlan:
        """Create a topic, with retries."""
        topics = [NewTopic(name, partitions, self.stage.replication_factor, configs=configs)]
        await self._settle(
            "create_topics",
            lambda admin: admin.create_topics(topics),
            ErrorCode.TOPIC_ALREADY_EXISTS,
            lambda: self.stage.committed_topic(name) not in (None, *self._deleted),
        )
        question = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
        begun_s = self.stage.now_s()
        while (found := (await self.ask_until_answered(question)).topics[0]).error_code or found.topic_id in self._deleted:
            # In a cluster: a node that is behind does not know the topic yet, or still knows the last one of this name.
            is_behind = found.error_code in (ErrorCode.NONE, *RETRIED_IN_CLUSTERS) and self.stage.is_cluster
            if not is_behind or self.stage.now_s() - begun_s > PATIENCE_S:
                break
            self.hang_up()  # ask another node
            await self.pause(BACKOFF_S_MAX)
        if found.error_code:
            raise Violation(f"topic {name} was made, and then the node said {error_name(found.error_code)} of it")
        topic = TopicPlan(name, found.topic_id, partitions, dict(configs))
        self.note("made", f"{name} {partitions} {configs}")
        self.stage.checkers.topic_made(topic)
        return topic

    async def _create_temporary(self) -> None:
        taken = [topic.name for topic in self.temporary]
        free = [name for name in TEMPORARY_TOPICS if name not in taken]
        if free:
            configs = {"segment.ms": "1000"} if self.random.random() < 0.5 else {}
            topic = await self.make(self.random.choice(free), self.random.randint(1, 3), configs)
            self.temporary.append(topic)
            if self.on_made is not None:
                self.on_made(topic)

    async def _delete_temporary(self) -> None:
        if not self.temporary:
            return
        topic = self.temporary.pop(self.random.randrange(len(self.temporary)))
        topic.is_leaving = True
        wanted: str | Uuid = topic.name
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if self.stage.is_cluster:
            # By id: brokers repeat requests, and a repeated one may come late and delete the next topic of this name.
            wanted, unknown = topic.topic_id, ErrorCode.UNKNOWN_TOPIC_ID
        await self._settle(
            "delete_topics",
            lambda admin: admin.delete_topics([wanted]),
            unknown,
            lambda: self.stage.committed_topic(topic.name) != topic.topic_id,
        )
        self._deleted[topic.topic_id] = None
        self.note("deleted", topic.name)
        self.stage.checkers.topic_deleted(topic)

    async def _grow(self) -> None:
        topic = self._any()
        if topic is None or topic.partitions > 6:
            return
        count = topic.partitions + self.random.randint(1, 2)
        # A retry of a change that was made is refused with INVALID_PARTITIONS.
        invalid = ErrorCode.INVALID_PARTITIONS
        await self._settle("create_partitions", lambda admin: admin.create_partitions({topic.name: count}), invalid)
        topic.partitions = count
        self.note("grown", f"{topic.name} {count}")
        self.stage.checkers.topic_changed(topic)

    async def _configure(self) -> None:
        topic = self._any()
        if topic is None:
            return
        name = self.random.choice(("segment.ms", "index.interval.bytes", "max.message.bytes"))
        value = str(self.random.randint(200, 2000) if name == "segment.ms" else self.random.randint(100_000, 200_000))
        is_set = name not in topic.configs or self.random.random() < 0.7
        change = {name: value if is_set else None}
        await self._settle("alter_configs", lambda admin: admin.alter_configs({("topic", topic.name): change}))
        if is_set:
            topic.configs[name] = value
        else:
            del topic.configs[name]
        self.note("configured", f"{topic.name} {name}={value if is_set else None}")
        self.stage.checkers.topic_changed(topic)

    async def _delete_records(self) -> None:
        if not self.topics:
            return
        topic = self.random.choice(self.topics)
        place, offset = Place(topic, self.random.randrange(topic.partitions)), self.random.randint(0, 60)
        self.stage.checkers.deletion_requested(place, offset)
        cut: dict[TopicPartition | tuple[str, int], int] = {TopicPartition(topic.name, place.number): offset}
        error = await self._try(lambda admin: admin.delete_records(cut))
        self.note("cut", f"{place} {offset}: {error_name(error.code) if error else 'NONE'}")

    async def _move(self) -> None:
        """Start a move of a partition to another log directory, without waiting for its end."""
        if not self.topics:
            return
        topic = self.random.choice(self.topics)
        name, number, path = topic.name, self.random.randrange(topic.partitions), self.random.choice(DIRECTORIES)
        if self._has_coordinators and self.random.random() < 0.6:
            name, number = self.random.choice((OFFSETS_TOPIC, TRANSACTIONS_TOPIC)), self.random.randrange(2)
        error = await self._try(lambda admin: admin.alter_replica_log_dirs({(name, number, NODE_ID): path}))
        self.note("move", f"{name}-{number} to {path}: {error_name(error.code) if error else 'NONE'}")

    async def _raise_version(self) -> None:
        """Raise transaction.version to the newest. Programs that can use it begin with their next transaction."""
        level = SUPPORTED_FEATURES[TRANSACTION_VERSION][1]
        if self.stage.transaction_version == level:
            return
        if self.stage.is_cluster:  # refused as long as a broker or controller has not registered
            error = await self._try(lambda admin: admin.update_features({TRANSACTION_VERSION: level}))
            if error is not None:
                self.note("refused", f"update_features {error_name(error.code)}")
                return
        else:
            await self._settle("update_features", lambda admin: admin.update_features({TRANSACTION_VERSION: level}))
        self.note("raised", f"{TRANSACTION_VERSION} {level}")
        self.stage.transaction_version = level

    # Asking

    def _any(self) -> TopicPlan | None:
        among = [*self.topics, *self.temporary]
        return self.random.choice(among) if among else None

    async def _try(self, call: Call) -> KafkaError | None:
        """Make a call about one item. Returns its error."""
        if self._client is None:
            self._client = RealAdmin(
                self.stage.bootstrap_servers,
                world=self.world(),
                client_id=self.name,
                default_api_timeout_ms=4_000,
                **CLIENT_SETTINGS,
            )
        try:
            return next(iter((await call(self._client)).errors.values()), None)
        except KafkaError as error:
            return error

    async def _settle(
        self, what: str, call: Call, done_already: ErrorCode | None = None, is_done: Callable[[], bool] = lambda: True
    ) -> None:
        """Retry until the change is made. After a lost connection, and from the second call on, `done_already` means that.

        In a cluster it does so at once, if `is_done`: a broker may have asked the controller twice. But a deposed controller
        that does not know it yet refuses by what it knows, as Kafka's does.
        """
        attempts = 1 if self.stage.is_cluster else 0
        while True:
            connection = self.connection
            error = await self._try(call)
            attempts += 1 if connection == self.connection else 2
            may_be_done = error is not None and attempts > 1 and error.code == done_already
            if error is None or (may_be_done and (is_done() or not self.stage.is_cluster)):
                return
            self.note("refused", f"{what} {error_name(error.code)}")
            if (
                not may_be_done
                and error.code not in (RETRIED_IN_CLUSTERS if self.stage.is_cluster else RETRIED)
                and not isinstance(error, UnreachableError)
                and not self.stage.is_disk_broken
            ):
                raise Violation(f"{what} failed, and nothing explains it: {error}")
            await self.pause(BACKOFF_S_MAX)
