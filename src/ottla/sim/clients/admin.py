"""The admin: creates and deletes topics, adds partitions, changes settings, deletes records, raises transaction.version.

It makes one change at a time and retries until the outcome is known: TOPIC_ALREADY_EXISTS after a lost answer means that the
topic was created. So checkers get only changes that certainly took effect.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.errors.codes import ErrorCode, error_name
from ottla.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from ottla.metadata.controller.features import UPGRADE
from ottla.metadata.features import SUPPORTED_FEATURES, TRANSACTION_VERSION
from ottla.sim.checkers.checker import Place, TopicPlan, Violation
from ottla.sim.clients.client import BACKOFF_S_MAX, Client, Stage
from ottla.sim.machine import DIRECTORIES
from ottla.wire.base import Message
from ottla.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.incremental_alter_configs import AlterableConfig, AlterConfigsResource, IncrementalAlterConfigsRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

TOPIC_RESOURCE = 2
SET, DELETE = 0, 1
TIMEOUT_MS = 2_000
RETRIED = (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_CONTROLLER)
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
        self._pause_s_max = pause_s_max

    async def run(self) -> None:
        steps = [
            self._create_temporary,
            self._create_temporary,
            self._delete_temporary,
            self._grow,
            self._configure,
            self._move,
        ]
        steps.append(self._move if self._has_coordinators else self._delete_records)
        if self._raises_version:
            steps += [self._raise_version] * 3
        await self.pause(self._pause_s_max)
        while not self.stage.is_ending:
            await self.random.choice(steps)()
            await self.pause(self._pause_s_max)

    def places(self) -> list[Place]:
        """Every partition of the plan's topics."""
        return [Place(topic, index) for topic in self.topics for index in range(topic.partitions)]

    # Steps

    async def make(self, name: str, partitions: int, configs: dict[str, str]) -> TopicPlan:
        """Create a topic, with retries."""
        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name=name,
                    num_partitions=partitions,
                    replication_factor=1,
                    configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
                )
            ],
            timeout_ms=TIMEOUT_MS,
        )
        await self._settle(request, "topics", {ErrorCode.TOPIC_ALREADY_EXISTS})
        question = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
        found = (await self.ask_until_answered(question)).topics[0]
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
        await self._settle(
            DeleteTopicsRequest(topics=[DeleteTopicState(name=topic.name)], timeout_ms=TIMEOUT_MS),
            "responses",
            {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
        )
        self.note("deleted", topic.name)
        self.stage.checkers.topic_deleted(topic)

    async def _grow(self) -> None:
        topic = self._any()
        if topic is None or topic.partitions > 6:
            return
        count = topic.partitions + self.random.randint(1, 2)
        request = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=topic.name, count=count, assignments=None)], timeout_ms=TIMEOUT_MS
        )
        # A retry of a change that was made is refused with INVALID_PARTITIONS.
        await self._settle(request, "results", {ErrorCode.INVALID_PARTITIONS})
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
        change = AlterableConfig(name=name, config_operation=SET if is_set else DELETE, value=value if is_set else None)
        request = IncrementalAlterConfigsRequest(
            resources=[AlterConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=topic.name, configs=[change])]
        )
        await self._settle(request, "responses", set())
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
        request = DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(
                    name=topic.name, partitions=[DeleteRecordsPartition(partition_index=place.number, offset=offset)]
                )
            ],
            timeout_ms=TIMEOUT_MS,
        )
        result = (await self.ask_until_answered(request)).topics[0].partitions[0]
        self.note("cut", f"{place} {offset}: {error_name(result.error_code)} {result.low_watermark}")

    async def _move(self) -> None:
        """Start a move of a partition to another log directory, without waiting for its end."""
        if not self.topics:
            return
        topic = self.random.choice(self.topics)
        name, number, path = topic.name, self.random.randrange(topic.partitions), self.random.choice(DIRECTORIES)
        if self._has_coordinators and self.random.random() < 0.6:
            name, number = self.random.choice((OFFSETS_TOPIC, TRANSACTIONS_TOPIC)), self.random.randrange(2)
        request = AlterReplicaLogDirsRequest(
            dirs=[AlterReplicaLogDir(path=path, topics=[AlterReplicaLogDirTopic(name=name, partitions=[number])])]
        )
        result = (await self.ask_until_answered(request)).results[0].partitions[0]
        self.note("move", f"{name}-{number} to {path}: {error_name(result.error_code)}")

    async def _raise_version(self) -> None:
        """Raise transaction.version to the newest. Programs that can use it begin with their next transaction."""
        level = SUPPORTED_FEATURES[TRANSACTION_VERSION][1]
        if self.stage.transaction_version == level:
            return
        update = FeatureUpdateKey(feature=TRANSACTION_VERSION, max_version_level=level, upgrade_type=UPGRADE)
        request = UpdateFeaturesRequest(timeout_ms=TIMEOUT_MS, feature_updates=[update])
        await self._settle(request, None, set())
        self.note("raised", f"{TRANSACTION_VERSION} {level}")
        self.stage.transaction_version = level

    # Asking

    def _any(self) -> TopicPlan | None:
        among = [*self.topics, *self.temporary]
        return self.random.choice(among) if among else None

    async def _settle(self, request: Message, answers_in: str | None, done_already: set[ErrorCode]) -> None:
        """Retry until the change is made. From the second attempt on, codes in `done_already` mean that too.

        `answers_in` is the field of the response with one result per change; None if it has one code for all.
        """
        attempts = 0
        while True:
            attempts += 1
            connections = self.connections
            answer = await self.ask_until_answered(request)
            attempts += self.connections - connections
            code = (answer if answers_in is None else getattr(answer, answers_in)[0]).error_code
            if code == ErrorCode.NONE or (attempts > 1 and code in done_already):
                return
            self.note("refused", f"{type(request).__name__} {error_name(code)}")
            if code not in RETRIED and not self.stage.is_disk_broken:
                raise Violation(f"{type(request).__name__} was answered with {error_name(code)}, which nothing explains")
            await self.pause(BACKOFF_S_MAX)
