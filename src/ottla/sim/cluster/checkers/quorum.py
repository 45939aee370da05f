"""Invariants of the metadata quorum, of the images that nodes make of its log, and of the controller."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ottla.errors import CorruptRecords
from ottla.metadata.image.delta import MetadataDelta
from ottla.metadata.image.image import MetadataImage, Provenance
from ottla.metadata.image.topics import NO_LEADER
from ottla.records.batch import iterate_batches
from ottla.records.layout import HEADER_SIZE
from ottla.sim.checkers.checker import Violation
from ottla.sim.cluster.checkers.checker import Answer, ClusterChecker, Entry, Logged
from ottla.sim.disk import Folder, Inode, MemoryDisk
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from ottla.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest


class CommittedLog(ClusterChecker):
    """Committed metadata is never lost or changed: all nodes commit the same batches, and every new leader has all of them.

    An active controller decides only after a batch of its epoch is committed, and answers a change only when it is committed.
    """

    def __init__(self) -> None:
        self.end_offset = 0
        self.judged = 0
        self._entries: dict[int, Entry] = {}
        self._committed_in: dict[int, int] = {}
        """Base offset → the epoch in which the first node regarded it as committed."""
        self._epochs: dict[int, None] = {}
        self._watermarks: dict[str, int] = {}

    def started(self, node: str) -> None:
        self._watermarks.pop(node, None)

    def committed(self, node: str, epoch: int, is_leader: bool, offset: int, batches: Sequence[Logged]) -> None:
        if offset < self._watermarks.get(node, 0):
            raise Violation(f"{node} had committed up to {self._watermarks[node]}, and now up to {offset}")
        self._watermarks[node] = offset
        for logged in batches:
            entry = logged.entry
            known = self._entries.get(entry.base_offset)
            if known is None and entry.base_offset < self.end_offset:
                raise Violation(f"{node} commits batch {entry}: no other node has committed a batch that begins there")
            if known is None:
                if entry.base_offset > self.end_offset:
                    raise Violation(f"{node} commits batch {entry}, and nobody has committed those from {self.end_offset} on")
                self._entries[entry.base_offset] = entry
                self._committed_in[entry.base_offset] = epoch
                self._epochs[entry.epoch] = None
                self.end_offset = entry.last_offset + 1
            elif known != entry:
                raise Violation(f"{node} commits batch {entry}, and committed there was batch {known}")
            self.judged += 1
        if is_leader and batches and batches[-1].entry.epoch != epoch:
            raise Violation(f"{node} leads epoch {epoch} and commits up to {offset} without a batch of its own epoch")

    def led(self, node: str, epoch: int, log: Sequence[Logged]) -> None:
        start = log[0].entry.base_offset if log else 0
        mine = {logged.entry.base_offset: logged.entry for logged in log}
        for base_offset, entry in self._entries.items():
            if base_offset < start or self._committed_in[base_offset] >= epoch:
                continue  # a paused candidate may begin to lead an epoch that is over: then it commits nothing
            if mine.get(base_offset) != entry:
                has = mine.get(base_offset, "nothing")
                raise Violation(f"{node} leads epoch {epoch} and has {has} where batch {entry} was committed before")

    def activated(self, node: str, epoch: int) -> None:
        if epoch not in self._epochs:
            raise Violation(f"the controller of {node} is active in epoch {epoch}, and no batch of that epoch is committed")

    def answered(self, node: str, answer: Answer) -> None:
        for entry in answer.entries:
            if self._entries.get(entry.base_offset) != entry:
                name = type(answer.request).__name__.removesuffix("Request")
                raise Violation(f"the controller of {node} has answered {name}, and batch {entry} of it is not committed")


class OneLeader(ClusterChecker):
    """An epoch of the metadata quorum has one leader, and every node votes for one candidate in it."""

    def __init__(self) -> None:
        self.leaders: dict[int, str] = {}
        self._votes: dict[tuple[str, int], int] = {}

    def voted(self, node: str, epoch: int, candidate_id: int) -> None:
        known = self._votes.setdefault((node, epoch), candidate_id)
        if known != candidate_id:
            raise Violation(f"{node} has voted for {known} and for {candidate_id} in epoch {epoch}")

    def led(self, node: str, epoch: int, log: Sequence[Logged]) -> None:
        known = self.leaders.setdefault(epoch, node)
        if known != node:
            raise Violation(f"epoch {epoch} has two leaders: {known} and {node}")


class DurableMajority(ClusterChecker):
    """What a leader commits is durable on a majority of the voters' disks at that moment: a power loss of all of them keeps it.

    Looks at the disks themselves, at the bytes that were synced.

    `disks` returns the disks of all voters by node; `folder` is that of the metadata log.
    """

    def __init__(self, disks: Callable[[], dict[str, MemoryDisk]], folder: str) -> None:
        self._disks = disks
        self._folder = folder
        self._known: dict[tuple[str, str], _Progress] = {}
        self.judged = 0

    def committed(self, node: str, epoch: int, is_leader: bool, offset: int, batches: Sequence[Logged]) -> None:
        if not is_leader:
            return
        self.judged += 1
        disks = self._disks()
        ends = {name: self._durable_end(name, disk) for name, disk in disks.items()}
        if sum(end >= offset for end in ends.values()) <= len(disks) // 2:
            found = ", ".join(f"{name} up to {end}" for name, end in ends.items())
            raise Violation(f"{node} commits up to {offset}, and durable is: {found}")

    def _durable_end(self, node: str, disk: MemoryDisk) -> int:
        """The end of the last synced batch of this node's log, or of its newest synced snapshot."""
        end, folder = 0, disk.names.find(self._folder)
        for name, inode in folder.entries.items() if isinstance(folder, Folder) else ():
            if not isinstance(inode, Inode):
                continue
            if name.endswith(".checkpoint") and inode.is_synced:
                end = max(end, int(name[:20]))
            elif name.endswith(".log"):
                end = max(end, self._known.setdefault((node, name), _Progress(int(name[:20]))).durable_end(inode))
        return end


class _Progress:
    """How far the synced bytes of one segment were looked at."""

    def __init__(self, base_offset: int) -> None:
        self._base_offset = base_offset
        self._position = 0
        self._end_offset = base_offset
        self._last = slice(0, 0)
        """Where the header of the last batch is."""
        self._header = b""

    def durable_end(self, inode: Inode) -> int:
        if inode.old_pages:  # synced bytes were changed since
            return _Progress(self._base_offset)._look(inode.synced_bytes())
        size = min(inode.synced_size, len(inode.data))
        if size < self._position or inode.data[self._last] != self._header:
            self.__init__(self._base_offset)  # type: ignore[misc]  # the log was truncated: begin again
        return self._look(memoryview(inode.data)[:size])

    def _look(self, data: bytearray | memoryview) -> int:
        try:
            for view in iterate_batches(bytes(data[self._position :]), allow_cut_end=True):
                self._last = slice(self._position, self._position + HEADER_SIZE)
                self._position += view.size
                self._end_offset = view.next_offset
        except CorruptRecords:
            pass  # a power loss has left zeros, which the next start removes
        self._header = bytes(data[self._last])
        return self._end_offset


FIELDS = [name for name in MetadataImage._fields if name != "provenance"]


class Images(ClusterChecker):
    """Every node's image is the state after a prefix of the committed log, and no node's image goes back within a life.

    The reference is a replay of the committed batches, one image after each. A node may have got there by another way, such as
    a snapshot: the result must be the same.

    Replays the committed log. `on_image` is called with every image before and after a committed batch.
    """

    def __init__(self, on_image: Callable[[MetadataImage, MetadataImage], None] | None = None) -> None:
        self.newest = MetadataImage()
        self.judged = 0
        self._on_image = on_image
        self._end_offset = 0
        self._images: dict[int, MetadataImage] = {-1: self.newest}
        self._published: dict[str, int] = {}

    def started(self, node: str) -> None:
        self._published.pop(node, None)

    def committed(self, node: str, epoch: int, is_leader: bool, offset: int, batches: Sequence[Logged]) -> None:
        for logged in batches:
            if logged.entry.base_offset != self._end_offset:
                continue  # replayed already
            batch = logged.decoded()
            self._end_offset = batch.last_offset + 1
            if batch.records:
                delta, before = MetadataDelta(self.newest), self.newest
                delta.replay_all(batch.records)
                self.newest = delta.finish(Provenance(batch.last_offset, batch.epoch, batch.timestamp_ms))
                self._images[batch.last_offset] = self.newest
                if self._on_image is not None:
                    self._on_image(before, self.newest)

    def published(self, node: str, image: MetadataImage) -> None:
        offset = image.provenance.offset
        if offset < self._published.get(node, -1):
            raise Violation(f"{node} has published the metadata up to {self._published[node]}, and then up to {offset}")
        self._published[node] = offset
        self._compare(node, image)

    def ended(self, images: dict[str, MetadataImage]) -> None:
        for node, image in images.items():
            if image.provenance.offset != self.newest.provenance.offset:
                ends = self.newest.provenance.offset
                raise Violation(f"{node} has applied the metadata up to {image.provenance.offset}, and the log ends at {ends}")
            self._compare(node, image)

    def _compare(self, node: str, image: MetadataImage) -> None:
        offset = image.provenance.offset
        expected = self._images.get(offset)
        if expected is None:
            raise Violation(f"{node} has an image up to offset {offset}, and no committed batch with records ends there")
        self.judged += 1
        for name in FIELDS:
            has, should = getattr(image, name), getattr(expected, name)
            if has != should:
                raise Violation(f"{node} has other {name} at offset {offset} than the committed log: {has}, not {should}")


FENCED_REQUESTS = (BrokerHeartbeatRequest, AllocateProducerIdsRequest, AssignReplicasToDirsRequest)
"""Requests with the epoch of the broker that sends them."""


class Fencing(ClusterChecker):
    """Fencing holds: a fenced broker leads nothing, a broker's epochs rise, and the controller obeys no older one."""

    def __init__(self) -> None:
        self.judged = 0

    def image_committed(self, before: MetadataImage, image: MetadataImage) -> None:
        """`image` follows `before` in the committed log."""
        for broker_id, broker in image.cluster.brokers.items():
            known = before.cluster.brokers.get(broker_id)
            if known is not None and broker.epoch < known.epoch:
                raise Violation(f"broker {broker_id} was registered in epoch {known.epoch}, and then in {broker.epoch}")
            if known is not None and broker.epoch == known.epoch and broker.incarnation_id != known.incarnation_id:
                raise Violation(f"two processes of broker {broker_id} share epoch {broker.epoch}")
        if before.topics is image.topics and before.cluster is image.cluster:
            return
        for topic in image.topics.by_id.values():
            for number, state in topic.partitions.items():
                if state.leader == NO_LEADER:
                    continue
                leader = image.cluster.brokers.get(state.leader)
                if leader is None or leader.fenced:
                    what = "is not registered" if leader is None else "is fenced"
                    at = image.provenance.offset
                    raise Violation(f"broker {state.leader} leads {topic.name}-{number} at offset {at}, and it {what}")

    def answered(self, node: str, answer: Answer) -> None:
        if not isinstance(answer.request, FENCED_REQUESTS):
            return
        self.judged += 1
        if answer.request.broker_epoch != answer.broker_epoch:
            name = type(answer.request).__name__.removesuffix("Request")
            raise Violation(
                f"the controller of {node} has obeyed {name} of broker {answer.request.broker_id} in epoch "
                f"{answer.request.broker_epoch}, and it is registered in epoch {answer.broker_epoch}"
            )


class ProducerBlocks(ClusterChecker):
    """Producer ids are handed out once: the blocks that controllers allocate do not overlap, and the next id only rises."""

    def __init__(self) -> None:
        self.blocks: list[tuple[int, int, int]] = []
        """First id, end and broker of each."""

    def image_committed(self, before: MetadataImage, image: MetadataImage) -> None:
        """`image` follows `before` in the committed log."""
        if image.next_producer_id < before.next_producer_id:
            raise Violation(f"the next producer id was {before.next_producer_id}, and then {image.next_producer_id}")

    def answered(self, node: str, answer: Answer) -> None:
        if not isinstance(answer.request, AllocateProducerIdsRequest):
            return
        start, broker_id = answer.response.producer_id_start, answer.request.broker_id
        end = start + answer.response.producer_id_len
        for first, behind, owner in self.blocks:
            if start < behind and first < end:
                raise Violation(
                    f"{node} has allocated the producer ids {start} to {end - 1} to broker {broker_id}, and {first} to "
                    f"{behind - 1} were allocated to broker {owner}"
                )
        self.blocks.append((start, end, broker_id))
