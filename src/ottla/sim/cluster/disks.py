"""Troubles of disks: `wipe`, a node loses all its files and comes back under its id; `full disk`, it has no space for a while;
`rot`, a record of a closed segment is damaged, until the disk is replaced or repaired.

Whether a node may be wiped is decided by what the others have:

- of partitions, another replica that could lead (`Safekeeping`);
- of the metadata log, all that is committed and all that the node itself has, on every other controller: its last fetch may
  still be on the way to the leader, and commit what it had. Each must have a record of the leader's epoch: one that led before
  may be as long with other records. With static voters a wiped node votes under its old key, and does
  not remember its votes: all controllers must know the leader of the same epoch, so that none stands in it.

A node is wiped only while all controllers are voters. Two lost voters of three would end the quorum, as in Kafka.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import NamedTuple

from ottla.ids import INTERNAL_TOPICS
from ottla.log.names import LOG_SUFFIX, segment_file_name
from ottla.metadata.image.image import MetadataImage
from ottla.metadata.image.topics import PartitionState
from ottla.records.batch import iterate_batches
from ottla.records.layout import HEADER_SIZE
from ottla.sim.clients.client import Client, Stage
from ottla.sim.clients.consumer import Consumer
from ottla.sim.cluster.checkers.checker import ClusterChecker
from ottla.sim.cluster.machine import ClusterMachine
from ottla.sim.disk import Inode


class Safekeeping(ClusterChecker):
    """Decides whether a node may end now, in runs where records are acknowledged before they are synced.

    A machine that loses its power loses unsynced writes. Replication makes up for that as long as another replica that could
    lead has them. The controller takes every broker that comes back after an unclean end for one that has lost records, a
    killed one as well. So only if all replicas in the ISR and ELR of a partition end uncleanly, and one of them with a power
    loss, may an acknowledged record be lost. Such an end is not carried out: then the checkers have to excuse nothing. The same
    holds if the last known leader is not among them: it has left the ELR after an unclean end, and leads once all of them have
    ended uncleanly.

    Decisions of a controller that are not committed yet count, too: a controller that reaches no other node takes brokers out
    of an ISR in its own log, and may commit that after its next start.

    A broker that shuts down leaves the ISR to the others, also to those whose end the controller has not noticed yet. So it
    keeps nothing from that moment on, although it ends cleanly.

    Keeps account of the brokers whose last process has ended uncleanly, until they are registered again.
    """

    def __init__(self) -> None:
        self._image = MetadataImage()
        self._uncommitted: list[tuple[int, MetadataImage]] = []
        """The offset of a change that a controller has appended, and its image with it, until that offset is committed."""
        self._unclean: dict[int, tuple[int, bool]] = {}
        """Broker → the epoch in which it was registered at that end, and whether it has lost power since."""
        self._stopping: set[int] = set()

    def image_committed(self, before: MetadataImage, image: MetadataImage) -> None:
        self._image = image
        self._uncommitted = [each for each in self._uncommitted if each[0] > image.provenance.offset]
        for broker_id, (epoch, _) in list(self._unclean.items()):
            broker = image.cluster.brokers.get(broker_id)
            if broker is not None and broker.epoch > epoch:
                del self._unclean[broker_id]

    def appended(self, node: str, offset: int, image: MetadataImage) -> None:
        self._uncommitted.append((offset, image))

    def note_end(self, broker_id: int, loses_writes: bool) -> None:
        """A broker's process ends uncleanly."""
        broker = self._image.cluster.brokers.get(broker_id)
        has_lost = self._unclean.get(broker_id, (0, False))[1]
        self._unclean[broker_id] = (-1 if broker is None else broker.epoch, loses_writes or has_lost)

    @contextmanager
    def stopping(self, broker_id: int) -> Iterator[None]:
        """A broker shuts down meanwhile."""
        self._stopping.add(broker_id)
        try:
            yield
        finally:
            self._stopping.discard(broker_id)

    def may_end(self, broker_ids: set[int], loses_writes: bool) -> bool:
        """Whether these brokers may end or shut down, all at once, without a loss of acknowledged records."""
        images = [self._image, *(image for _, image in self._uncommitted)]
        topics = [topic for image in images for topic in image.topics.by_id.values()]
        return all(self._is_kept(state, broker_ids, loses_writes) for topic in topics for state in topic.partitions.values())

    def _is_kept(self, state: PartitionState, broker_ids: set[int], loses_writes: bool) -> bool:
        holders = {*state.isr, *state.elr} or {*state.last_known_elr}
        if not holders & broker_ids or holders - broker_ids - self._unclean.keys() - self._stopping:
            return True
        if not holders.issuperset(state.last_known_elr):
            return False
        return not loses_writes and not any(self._unclean.get(each, (0, False))[1] for each in holders)


class ColdBatch(NamedTuple):
    """A batch in a closed segment, by the place of its records in the file."""

    path: str
    start: int
    end: int
    is_led: bool
    """Whether its node leads the partition: then consumers read it."""


def cold_batches(machine: ClusterMachine) -> Iterator[ColdBatch]:
    """The batches of clients in the closed and flushed segments of a node that is up."""
    if not machine.is_up or machine.node is None:
        return
    for partition in machine.node.services.partitions:
        log = partition.log
        if partition.name.topic in INTERNAL_TOPICS or log.config.compact or log.failure is not None:
            continue
        for base_offset, next_offset in zip(log.segments.base_offsets, log.segments.base_offsets[1:], strict=False):
            path = f"{log.folder}/{segment_file_name(base_offset, LOG_SUFFIX)}"
            inode = machine.disk.names.find(path)
            if next_offset <= log.recovery_point and isinstance(inode, Inode):
                for view in iterate_batches(bytes(inode.data), allow_cut_end=True):
                    yield ColdBatch(path, view.position + HEADER_SIZE, view.position + view.size, partition.is_leading)


def rot(machine: ClusterMachine, batch: ColdBatch, random: Random) -> Callable[[], None]:
    """`rot`: a byte of a record in a closed, flushed segment of a node changes, and after a while its disk is replaced or
    repaired.

    Nobody may take the damaged batch for records: followers refuse it, consumers raise, and both go on when it is whole again.
    The node does not end meanwhile (`turn` is held, and plans with `kill all` have no rot): a start may cut a log at a damaged
    batch.

    Returns what changes it back, unless the file is gone by then.
    """
    inode = machine.disk.names.find(batch.path)
    assert isinstance(inode, Inode)
    position = random.randrange(batch.start, batch.end)
    inode.data[position] ^= 0xFF

    def repair() -> None:
        if machine.disk.names.find(batch.path) is inode:
            inode.data[position] ^= 0xFF

    return repair


WAIT_S_MAX = 6.0
"""How long the others may take until they have everything."""
REJOIN_S_MAX = 15.0
COLD_S_MAX = 4.0
"""How long a closed segment is waited for."""
LOOK_S = 0.05


class DiskTroubles:
    """Carries them out on `machines`. `committed_end` gives the end of the committed metadata log; `may_end` notes an end."""

    def __init__(
        self,
        machines: Sequence[ClusterMachine],
        stage: Stage,
        safekeeping: Safekeeping,
        committed_end: Callable[[], int],
        may_end: Callable[..., bool],
        quorum_turn: asyncio.Lock | None = None,
        clients: Sequence[Client] = (),
    ) -> None:
        self._machines, self._stage, self._safekeeping, self._clients = machines, stage, safekeeping, clients
        self._committed_end, self._may_end = committed_end, may_end
        self._random = Random(f"{stage.seed}/disks")
        self._quorum_turn = quorum_turn or asyncio.Lock()
        """Held while a controller is not a voter."""

    async def wipe(self, machine: ClusterMachine, down_s: float) -> None:
        async with self._quorum_turn:
            async with machine.turn:
                if not await self._replace(machine, down_s):
                    return
            await self._rejoined(machine)

    async def _replace(self, machine: ClusterMachine, down_s: float) -> bool:
        """Wipe and start a node, if the others have everything. Returns whether it was done."""
        if not await soon(lambda: self.may_lose(machine), WAIT_S_MAX):
            self._stage.trace.note(machine.name, "spared", "wipe: the others have not all that it has")
            return False
        self._may_end("wipe", machine)
        machine.wipe()
        await asyncio.sleep(down_s)
        machine.start()
        return True

    async def _rejoined(self, machine: ClusterMachine) -> None:
        if not await soon(self._all_vote, REJOIN_S_MAX):
            self._stage.trace.note(machine.name, "no voter", f"{REJOIN_S_MAX:g} s after it was wiped")

    def may_lose(self, machine: ClusterMachine) -> bool:
        """Whether a node may lose all that it has now: it is there, and the others have it, too."""
        return not machine.is_lost and self._all_vote() and self._is_kept_by_others(machine)

    def _is_kept_by_others(self, machine: ClusterMachine) -> bool:
        controllers = [each for each in self._machines if each.is_controller]
        if len({each.quorum.epoch for each in controllers}) > 1 or not all(each.quorum.has_leader for each in controllers):
            return False
        if any(each.quorum.log.last_epoch != each.quorum.epoch for each in controllers):
            return False  # the records that it has may be others than the leader's
        end = max(self._committed_end(), machine.quorum.synced_offset if machine.is_controller else 0)
        kept = all(each.quorum.synced_offset >= end for each in controllers if each is not machine)
        return kept and self._safekeeping.may_end({machine.number}, loses_writes=True)

    def _all_vote(self) -> bool:
        return all(each.is_up and not each.is_out_of_voters for each in self._machines)

    async def rot(self, machine: ClusterMachine, length_s: float) -> None:
        async with self._quorum_turn:
            async with machine.turn:
                if not await soon(lambda: any(True for _ in cold_batches(machine)), COLD_S_MAX):
                    return
                batches = list(cold_batches(machine))
                batch = self._random.choice([each for each in batches if each.is_led] or batches)
                self._stage.has_rot = True
                repair = rot(machine, batch, self._random)
                self._stage.trace.note(machine.name, "rot", batch.path)
                for client in self._clients:
                    if isinstance(client, Consumer):
                        client.rewind()
                await asyncio.sleep(length_s)
                if self._random.random() < 0.5 or not await self._replace(machine, down_s=0.5):
                    self._stage.trace.note(machine.name, "repaired", batch.path)
                    repair()
            await self._rejoined(machine)

    async def full(self, machine: ClusterMachine, length_s: float) -> None:
        async with machine.turn:
            if not self._may_end("kill", machine):  # it stops by itself as soon as it cannot write
                return
            self._stage.is_disk_broken = True
            machine.fill_disk()
            await asyncio.sleep(length_s)
            machine.kill()
            machine.start()


async def soon(condition: Callable[[], bool], limit_s: float) -> bool:
    """Wait until `condition` holds. Returns whether it does within `limit_s`."""
    loop = asyncio.get_running_loop()
    until_s = loop.time() + limit_s
    while not condition():
        if loop.time() >= until_s:
            return False
        await asyncio.sleep(LOOK_S)
    return True
