"""A machine of a simulated cluster: broker and controller in one process, a voter of the cluster's quorum; or a broker alone.

A machine that is wiped comes back under its id with new directories. With static voters it votes again. With voters in the
metadata log it has another directory id, so it is an observer that joins the voters by itself (controller.quorum.auto.join).
A machine that is lost never comes back. Its replacement has another node id, its roles, and empty directories.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Iterable, Mapping
from random import Random

from ottla.broker.formatting import FormatOptions, format_directories
from ottla.broker.node import Node
from ottla.config.broker import BrokerConfig
from ottla.env import World
from ottla.ids import TopicPartition, uuid_text
from ottla.metadata.image.image import MetadataImage
from ottla.raft.replica import Replica
from ottla.sim.cluster.checkers.checker import HeldPartition, PartitionKey
from ottla.sim.cluster.checkers.partitions import Replica as HeldReplica
from ottla.sim.cluster.watch import Watch, logged_batches, watched_node
from ottla.sim.disk import Names
from ottla.sim.loop import VirtualLoop
from ottla.sim.machine import CONTROLLER_PORT, DIRECTORIES, PORT, Machine
from ottla.sim.net import SimNetwork
from ottla.sim.trace import Trace
from ottla.sim.world import SeededRandomness

STOP_S_MAX = 20.0
"""How long a clean shutdown may take, also without a quorum."""
BOOTSTRAP_SERVERS = "controller.quorum.bootstrap.servers"
AUTO_JOIN = "controller.quorum.auto.join.enable"
FULL = ("append", "write", "replace", "make_directory")
"""The calls that a full disk refuses."""
METADATA_FOLDER = f"{DIRECTORIES[0]}/__cluster_metadata-0"


def node_name(number: int) -> str:
    """The name of a node in the trace, and of its host."""
    return f"n{number}"


class ClusterFacts:
    """What all nodes of a cluster have in common: its id, its voters, the first feature levels."""

    def __init__(
        self, seed: int, count: int, is_static: bool, levels: Mapping[str, int], controllers: int | None = None
    ) -> None:
        randomness = SeededRandomness(Random(f"{seed}/cluster"))
        self.seed = seed
        self.names = tuple(node_name(number) for number in range(1, count + 1))
        """The first nodes."""
        self.controllers = count if controllers is None else controllers
        """How many nodes are controllers, too: the first ones."""
        self.controller_hosts = list(self.names[: self.controllers])
        """Where a machine that is set up now looks for the quorum."""
        self.levels = levels
        self.is_static = is_static
        """Whether the voters are in the settings (kraft.version 0); else in the metadata log."""
        self.id = uuid_text(randomness.new_uuid())
        voters = [(number, name, uuid_text(randomness.new_uuid())) for number, name in enumerate(self.names, start=1)]
        voters = voters[: self.controllers]
        self.static_voters = ",".join(f"{number}@{name}:{CONTROLLER_PORT}" for number, name, _ in voters)
        self.initial_controllers = ",".join(f"{number}@{name}:{CONTROLLER_PORT}:{uuid}" for number, name, uuid in voters)

    def settings(self, number: int, is_controller: bool) -> dict[str, str]:
        """The settings of node `number` that differ from those of a single node."""
        servers = ",".join(f"{name}:{CONTROLLER_PORT}" for name in self.controller_hosts)
        settings = {"node.id": str(number)}
        settings |= {"controller.quorum.voters": self.static_voters} if self.is_static else {BOOTSTRAP_SERVERS: servers}
        if not is_controller:
            listener = f"PLAINTEXT://{node_name(number)}:{PORT}"
            settings |= {"process.roles": "broker", "listeners": listener, "advertised.listeners": listener}
        return settings


class ClusterMachine(Machine):
    """Node `number` of a cluster, counted from 1. The first ones are controllers, too, unless `is_controller` says."""

    def __init__(
        self,
        loop: VirtualLoop,
        network: SimNetwork,
        random: Random,
        trace: Trace,
        settings: Mapping[str, str],
        cluster: ClusterFacts,
        number: int,
        watch: Watch,
        is_controller: bool | None = None,
    ) -> None:
        self.is_controller = number <= cluster.controllers if is_controller is None else is_controller
        own = cluster.settings(number, self.is_controller)
        super().__init__(loop, network, random, trace, {**settings, **own}, cluster.levels, node_name(number))
        if cluster.is_static:
            self.settings = {key: value for key, value in self.settings.items() if key != BOOTSTRAP_SERVERS}
        self.number = number
        self.wipes = 0
        """How often it has lost all it had."""
        self.is_lost = False
        """Whether it is gone for good."""
        self._knows_voters = self.is_controller and not cluster.is_static
        """Whether its directories are formatted with the first voters; else it learns them from the metadata log."""
        self._common_settings = settings
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
        options = FormatOptions(
            self._cluster.id,
            initial_controllers=self._cluster.initial_controllers if self._knows_voters else None,
            no_initial_controllers=not self._knows_voters and not self._cluster.is_static,
            features=self._cluster.levels,
            ignore_formatted=True,
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

    @property
    def quorum(self) -> Replica:
        """Its replica of the metadata log."""
        assert self.node is not None
        return self.node.services.quorum.replica

    @property
    def is_out_of_voters(self) -> bool:
        """Whether it should be a voter, and does not know that it is."""
        return self.is_controller and not self.quorum.is_voter

    def replicas(self) -> dict[TopicPartition, HeldReplica]:
        """Its replicas of partitions that are not compacted."""
        assert self.node is not None
        found: dict[TopicPartition, HeldReplica] = {}
        for partition in self.node.services.partitions:
            log = partition.log
            if not log.config.compact:
                batches = logged_batches(log, log.log_start_offset, log.high_watermark)
                entries = [each.entry for each in batches]
                found[partition.name] = HeldReplica(log.log_start_offset, log.high_watermark, entries, log.epochs.entries)
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

    # Disks

    def wipe(self) -> None:
        """End the process, and lose all files. The next life formats the directories again."""
        self._trace.note(self.name, "wipe")
        self._lose_files()
        self.wipes += 1
        self._knows_voters = False
        if self.is_controller and not self._cluster.is_static:
            self.settings = {**self.settings, AUTO_JOIN: "true"}

    def lose(self) -> None:
        """End the process for good: the machine and its disks are gone, and its host does not answer any more."""
        self._trace.note(self.name, "lost")
        self._lose_files()
        self._network.remove(self.name)
        self.is_lost = True

    def _end(self, silently: bool = False) -> None:
        partitions = self._watch.partitions.get(self.name)
        if partitions is not None and self.is_alive:
            partitions.ends()
        super()._end(silently)

    def _lose_files(self) -> None:
        self.tell_writes_lost()
        self._end(silently=True)
        self.disk = self.disk.crash(power_loss=False)
        self.disk.names = Names()

    def replacement(self, number: int, auto_join: bool) -> ClusterMachine:
        """A new machine for this one, which is lost. With `auto_join` a controller adds itself to the voters."""
        cluster, name = self._cluster, node_name(number)
        cluster.controller_hosts = [name if host == self.name else host for host in cluster.controller_hosts]
        random = Random(f"{cluster.seed}/machine/{number}")
        machine = ClusterMachine(
            self._loop,
            self._network,
            random,
            self._trace,
            self._common_settings,
            cluster,
            number,
            self._watch,
            self.is_controller,
        )
        machine.rate = self.rate
        machine._knows_voters = False
        if auto_join:
            machine.settings = {**machine.settings, AUTO_JOIN: "true"}
        return machine

    def fill_disk(self) -> None:
        """Refuse what needs space on the disk, until the process ends. The node may stop by itself because of it."""
        self._trace.note(self.name, "full disk")
        self.fault_expected = True
        for operation in FULL:
            self.disk.fail(operation, error=errno.ENOSPC, times=None)

    async def stop(self) -> None:
        try:
            async with asyncio.timeout(STOP_S_MAX):
                await super().stop()
        except TimeoutError:
            self._trace.note(self.name, "stop", f"has not ended within {STOP_S_MAX:g} s")
            self.kill()


class Machines(list["ClusterMachine"]):
    """A machine's place in this list stays when it is replaced; node ids are never used twice. All parts of a run share it."""

    def __init__(self, machines: Iterable[ClusterMachine]) -> None:
        super().__init__(machines)
        self.lost: list[ClusterMachine] = []
        """Those that are gone for good, also while none has taken their place yet."""

    def by_id(self, node_id: int) -> ClusterMachine | None:
        """The machine of a node; None if it was replaced."""
        return next((each for each in self if each.number == node_id), None)

    def lose(self, machine: ClusterMachine) -> None:
        """Lose a machine. It stays in its place, and down, until it is replaced."""
        machine.lose()
        self.lost.append(machine)

    def replace(self, lost: ClusterMachine, auto_join: bool) -> ClusterMachine:
        """Put a new machine, not started, in the place of a lost one."""
        node_id = 1 + max(each.number for each in (*self, *self.lost))
        machine = self[self.index(lost)] = lost.replacement(node_id, auto_join)
        return machine
