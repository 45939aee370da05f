"""`HeldPartitions` with a controller that decides and commits, and moves between log directories."""

from collections.abc import Mapping
from typing import Any

from tests.support.nodes.held_partitions import NODE, HeldPartitions

from ottla.broker.partitions.moves import Moves
from ottla.ids import TopicPartition, Uuid
from ottla.metadata.controller.apis import decision_of
from ottla.metadata.controller.state import ControllerSettings, ControllerState
from ottla.metadata.features import METADATA_VERSION, METADATA_VERSION_MAX
from ottla.sim.world import SeededRandomness
from ottla.wire.base import Message
from ottla.wire.messages.metadata_records import FeatureLevelRecord, RegisterBrokerRecord

BROKER_EPOCH = 1
T_0 = TopicPartition("t", 0)
THROTTLE = "replica.alter.log.dirs.io.max.bytes.per.second"


class StandInController:
    """Decides on the node's own metadata and commits at once."""

    def __init__(self, held: HeldPartitions) -> None:
        self._held = held
        self.writes = 0
        self.refusal: Exception | None = None
        self.offline: frozenset[Uuid] = frozenset()
        """The directories that heartbeats report as offline."""

    async def call(self, request: Message, timeout_ms: int | None = None) -> Any:
        self.writes += 1
        if self.refusal is not None:
            raise self.refusal
        image = self._held.metadata.image
        state = ControllerState(ControllerSettings("c", NODE), SeededRandomness(self._held.disk.random), image)
        state.sessions.touch(NODE, BROKER_EPOCH, 0).offline_directories = self.offline
        decision = decision_of(request.KEY)(state, request, 0, 0)
        await self._held.commit(*decision.records)
        return decision.response


class MovingNode:
    """Node 1 with topic `t` (100 records of 1 KB in one partition), in virtual time."""

    def __init__(self, held: HeldPartitions) -> None:
        self.held = held

    @classmethod
    async def open(cls, settings: Mapping[str, str] | None = None, paths: tuple[str, ...] = ("/a", "/b")) -> "MovingNode":
        node = cls(await HeldPartitions.open(settings, paths))
        ids = [each.directory_id for each in node.held.directories.directories if each.directory_id is not None]
        await node.held.commit(
            FeatureLevelRecord(name=METADATA_VERSION, feature_level=METADATA_VERSION_MAX),
            RegisterBrokerRecord(
                broker_id=NODE,
                incarnation_id=Uuid(b"i" * 16),
                broker_epoch=BROKER_EPOCH,
                fenced=False,
                log_dirs=ids,
            ),
        )
        node.start()
        return node

    def start(self) -> None:
        self.controller = StandInController(self.held)
        self.moves = Moves(self.held.partitions, self.held.metadata, self.controller, lambda: BROKER_EPOCH)  # type: ignore[arg-type]
        self.held.services.moves = self.moves
        self.moves.start()

    async def restart(self, **how: Any) -> None:
        await self.moves.stop()
        await self.held.restart(**how)
        self.start()

    def throttle(self, bytes_per_second: int | None) -> None:
        """Let moves copy no faster than this."""
        current = self.held.settings.current
        value = 2**63 - 1 if bytes_per_second is None else bytes_per_second
        object.__setattr__(current, THROTTLE.replace(".", "_"), value)

    def place(self, name: TopicPartition = T_0) -> str:
        """The directory that the partition is in."""
        directory = self.held.directories.directory_of(name)
        assert directory is not None
        assert directory.logs[name] is self.held.partition(*name).log
        return directory.path

    def known_place(self, name: TopicPartition = T_0) -> str | None:
        """The directory that the controller believes it to be in."""
        [known] = self.held.metadata.image.topics.by_name[name.topic].partitions[name.partition].directories
        return next((each.path for each in self.held.directories.directories if each.directory_id == known), None)

    def leader(self, name: TopicPartition = T_0) -> int:
        return self.held.metadata.image.topics.by_name[name.topic].partitions[name.partition].leader

    def on_its_way_to(self, name: TopicPartition = T_0) -> str | None:
        directory = self.held.directories.future_of(name)
        return None if directory is None else directory.path
