"""Decides whether a node may end now, in runs where records are acknowledged before they are synced.

A machine that loses its power loses unsynced writes. Replication makes up for that as long as another replica that could lead
has them. The controller takes every broker that comes back after an unclean end for one that has lost records, a killed one as
well. So only if all replicas in the ISR and ELR of a partition end uncleanly, and one of them with a power loss, may an
acknowledged record be lost. Such an end is not carried out: then the checkers have to excuse nothing. The same holds if the
last known leader is not among them: it has left the ELR after an unclean end, and leads once all of them have ended uncleanly.

Decisions of a controller that are not committed yet count, too: a controller that reaches no other node takes brokers out of an
ISR in its own log, and may commit that after its next start.

A broker that shuts down leaves the ISR to the others, also to those whose end the controller has not noticed yet. So it keeps
nothing from that moment on, although it ends cleanly.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ottla.metadata.image.image import MetadataImage
from ottla.metadata.image.topics import PartitionState
from ottla.sim.cluster.checkers.checker import ClusterChecker


class Safekeeping(ClusterChecker):
    """Keeps account of the brokers whose last process has ended uncleanly, until they are registered again."""

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
