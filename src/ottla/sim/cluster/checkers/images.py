"""Every node's image is the state after a prefix of the committed log, and no node's image goes back within a life.

The reference is a replay of the committed batches, one image after each. A node may have got there by another way, such as a
snapshot: the result must be the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ottla.metadata.image.delta import MetadataDelta
from ottla.metadata.image.image import MetadataImage, Provenance
from ottla.sim.checkers.checker import Violation
from ottla.sim.cluster.checkers.checker import ClusterChecker, Logged

FIELDS = [name for name in MetadataImage._fields if name != "provenance"]


class Images(ClusterChecker):
    """Replays the committed log. `on_image` is called with every image before and after a committed batch."""

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
