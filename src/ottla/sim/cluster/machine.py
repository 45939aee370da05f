"""A machine of a simulated cluster: broker and controller in one process, a voter of the cluster's quorum."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from random import Random

from ottla.broker.formatting import FormatOptions, format_directories
from ottla.broker.node import Node
from ottla.config.broker import BrokerConfig
from ottla.env import World
from ottla.ids import TopicPartition, uuid_text
from ottla.metadata.image.image import MetadataImage
from ottla.sim.cluster.checkers.checker import HeldPartition, PartitionKey
from ottla.sim.cluster.checkers.equal_replicas import Replica
from ottla.sim.cluster.watching import Watch, logged_batches, watched_node
from ottla.sim.loop import VirtualLoop
from ottla.sim.machine import CONTROLLER_PORT, DIRECTORIES, Machine
from ottla.sim.net import SimNetwork
from ottla.sim.randomness import SeededRandomness
from ottla.sim.trace import Trace

STOP_S_MAX = 20.0
"""How long a clean shutdown may take, also without a quorum."""
BOOTSTRAP_SERVERS = "controller.quorum.bootstrap.servers"
METADATA_FOLDER = f"{DIRECTORIES[0]}/__cluster_metadata-0"


class Cluster:
    """What all nodes of a cluster have in common: its id, its voters, the first feature levels."""

    def __init__(self, seed: int, count: int, is_static: bool, levels: Mapping[str, int]) -> None:
        randomness = SeededRandomness(Random(f"{seed}/cluster"))
        self.names = tuple(f"n{number}" for number in range(1, count + 1))
        self.levels = levels
        self.is_static = is_static
        """Whether the voters are in the settings (kraft.version 0); else in the metadata log."""
        self.id = uuid_text(randomness.new_uuid())
        voters = [(number, name, uuid_text(randomness.new_uuid())) for number, name in enumerate(self.names, start=1)]
        self.static_voters = ",".join(f"{number}@{name}:{CONTROLLER_PORT}" for number, name, _ in voters)
        self.initial_controllers = ",".join(f"{number}@{name}:{CONTROLLER_PORT}:{uuid}" for number, name, uuid in voters)

    def settings(self, number: int) -> dict[str, str]:
        """The settings of node `number` that differ from those of a single node."""
        servers = ",".join(f"{name}:{CONTROLLER_PORT}" for name in self.names)
        voters = {"controller.quorum.voters": self.static_voters}
        return {"node.id": str(number)} | (voters if self.is_static else {BOOTSTRAP_SERVERS: servers})


class ClusterMachine(Machine):
    """Node `number` of a cluster, counted from 1."""

    def __init__(
        self,
        loop: VirtualLoop,
        network: SimNetwork,
        random: Random,
        trace: Trace,
        settings: Mapping[str, str],
        cluster: Cluster,
        number: int,
        watch: Watch,
    ) -> None:
        name = cluster.names[number - 1]
        super().__init__(loop, network, random, trace, {**settings, **cluster.settings(number)}, cluster.levels, name)
        if cluster.is_static:
            self.settings = {key: value for key, value in self.settings.items() if key != BOOTSTRAP_SERVERS}
        self.number = number
        self._cluster = cluster
        self._watch = watch
        self.turn = asyncio.Lock()
        """Held while the process is killed, paused or started by one of the run's troubles."""

    def start(self) -> None:
        self._network.boot(self.name)
        self._watch.partitions.pop(self.name, None)
        super().start()

    async def format(self, world: World) -> None:
        config = BrokerConfig.from_settings(self.settings)
        first = None if self._cluster.is_static else self._cluster.initial_controllers
        options = FormatOptions(
            self._cluster.id, initial_controllers=first, features=self._cluster.levels, ignore_formatted=True
        )
        await format_directories(world, config, options)

    async def start_node(self, world: World) -> Node:
        return await watched_node(self._watch, self.name).start(world, self.settings, hostname=self.name)

    @property
    def is_up(self) -> bool:
        """Whether the node of this life has started and runs."""
        return self.node is not None and self.is_alive and not self.is_paused

    @property
    def image(self) -> MetadataImage:
        """The newest image that the node has applied."""
        assert self.node is not None
        return self.node.services.loader.published

    def replicas(self) -> dict[TopicPartition, Replica]:
        """Its replicas of partitions that are not compacted."""
        assert self.node is not None
        found: dict[TopicPartition, Replica] = {}
        for partition in self.node.services.partitions:
            log = partition.log
            if not log.config.compact:
                batches = logged_batches(log, log.log_start_offset, log.high_watermark)
                found[partition.name] = Replica(log.log_start_offset, log.high_watermark, [each.entry for each in batches])
        return found

    def tell_writes_lost(self) -> None:
        """Tell the checkers that its unsynced writes are about to be lost."""
        self._watch.tell(self._watch.checkers.writes_lost, self.name)

    def held(self, key: PartitionKey) -> HeldPartition | None:
        """A partition as its process has it now; None if it has none, or is dead."""
        found = self._watch.partitions.get(self.name)
        return None if found is None or not self.is_alive else found.held(key)

    @property
    def leads(self) -> bool:
        """Whether its controller is active."""
        return self.node is not None and self.is_alive and self.node.services.controller.is_active

    async def stop(self) -> None:
        try:
            async with asyncio.timeout(STOP_S_MAX):
                await super().stop()
        except TimeoutError:
            self._trace.note(self.name, "stop", f"has not ended within {STOP_S_MAX:g} s")
            self.kill()
