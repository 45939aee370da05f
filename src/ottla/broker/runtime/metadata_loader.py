"""Follows the committed metadata on this node: replays it into images, publishes them, and takes snapshots of them.

Every node has one, whatever its roles; the active controller is apart from it. The quorum hands over committed batches in the
order of the log (`quorum_listener.py`); that is a plain call, so a commit never waits for publishing. A task of its own replays
what has come and publishes the new image. Publishing makes and deletes logs, which takes seconds for thousands of partitions;
batches that are committed during that time are published together.

Loop rule: one task publishes, one image after the other. If replaying or publishing fails, `failure` is set and the node stops:
what its requests see would no longer be the committed metadata.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from ottla.broker.requests.scheduler import BackgroundPauses
from ottla.errors import KafkaError, OttlaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.image.delta import MetadataDelta
from ottla.metadata.image.image import MetadataImage, Provenance

if TYPE_CHECKING:
    from ottla.broker.runtime.metadata_log import MetadataBatch
    from ottla.broker.runtime.snapshot_writer import SnapshotWriter

logger = logging.getLogger("ottla.metadata")

Publish = Callable[[MetadataDelta, MetadataImage], Awaitable[None]]

RECORDS_PER_PAUSE = 100
"""After this many replayed records it is checked whether other tasks have to run."""


class MetadataLoader:
    """The committed metadata of one node. `load`, then `start`; from then on the quorum hands over what it commits."""

    def __init__(self, publish: Publish, snapshots: SnapshotWriter) -> None:
        self._publish = publish
        self._published = MetadataImage()
        self._newest = self._published
        """The newest complete image; it may be about to be published."""
        self._loaded: MetadataDelta | None = None
        """What led to the image loaded at the start, until that is published."""
        self._queued: deque[tuple[MetadataBatch, bool]] = deque()
        """What is committed and not in `_newest`; with True if it is a snapshot, which replaces everything before it."""
        self._is_begun = False
        """Whether anything is published."""
        self._folded_bytes = 0
        """The size of what is in `_newest` and was not counted for snapshots yet."""
        self._arrived = asyncio.Event()
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._task: asyncio.Task[None] | None = None
        self.snapshots = snapshots
        self.may_begin: Callable[[int], bool] = lambda end_offset: True
        """Whether an image of everything below `end_offset` may be published, if it is the first. A broker would take logs of
        topics that later batches create for strays, so a node that starts waits until it has caught up with its quorum."""
        self.committed_offset = 0
        """The end of what is committed."""
        self.published_offset = 0
        """The end of what is published."""
        self.failure: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        """Set, with the reason, when nothing is published any more: the node must stop."""

    @property
    def published(self) -> MetadataImage:
        """The image of what is published."""
        return self._published

    def committed_image(self) -> MetadataImage:
        """The image of what is committed, whether it is published or not."""
        delta, items, _ = self._open(list(self._queued), self._newest)
        provenance = self._newest.provenance
        for batch in items:
            if batch.records:
                delta.replay_all(batch.records)
                provenance = Provenance(batch.last_offset, batch.epoch, batch.timestamp_ms)
        return delta.finish(provenance)

    # -- what the quorum hands over

    def load(self, batches: Iterable[MetadataBatch]) -> None:
        """Load what this node knows to be committed when it starts. It is published once the quorum has a leader."""
        self._loaded, provenance, size_bytes = MetadataDelta(self._published), Provenance(), 0
        for batch in batches:
            self._loaded.replay_all(batch.records)
            provenance = Provenance(batch.last_offset, batch.epoch, batch.timestamp_ms)
            size_bytes += batch.size_bytes
        self._newest = self._loaded.finish(provenance)
        self.snapshots.loaded(size_bytes)

    def committed(self, batches: Sequence[MetadataBatch]) -> None:
        """`batches` are committed; they follow what was committed before."""
        self._queued.extend((batch, False) for batch in batches)
        self.committed_offset = batches[-1].last_offset + 1
        self._arrived.set()

    def loaded_snapshot(self, snapshot: MetadataBatch) -> None:
        """A snapshot of another node has replaced the log: its records are all there is up to its last offset."""
        self._queued.append((snapshot, True))
        self.committed_offset = snapshot.last_offset + 1
        self._arrived.set()

    def leader_changed(self, leader_id: int | None, epoch: int) -> None:
        """Nothing to do: what is committed stays committed under every leader."""

    # -- publishing

    def start(self) -> None:
        """Start to publish what is committed."""
        self._task = asyncio.get_running_loop().create_task(self._follow())

    def published_up_to(self, end_offset: int) -> asyncio.Future[None]:
        """A future that is done when everything below `end_offset` is published."""
        published: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if end_offset <= self.published_offset:
            published.set_result(None)
        elif self.failure.done():
            published.set_exception(_has_failed(self.failure.result()))
        else:
            self._waiting.append((end_offset, published))
        return published

    def caught_up(self) -> asyncio.Future[None]:
        """A future that is done when everything that is committed now is published."""
        return self.published_up_to(self.committed_offset)

    async def _follow(self) -> None:
        try:
            while True:
                await self._arrived.wait()
                self._arrived.clear()
                await self._publish_committed()
        except Exception as failure:
            is_expected = isinstance(failure, OttlaError)
            logger.error("the metadata cannot be applied, so this node stops: %s", failure, exc_info=not is_expected)
            self._fail(failure)

    async def _publish_committed(self) -> None:
        if self._loaded is not None:
            await self._publish(self._loaded, self._newest)
            self._published, self._loaded, self._is_begun = self._newest, None, True
        queued = list(self._queued)
        if not queued:
            return  # what came during the last publication was taken with it
        delta, items, is_replacing = self._open(queued, self._newest)
        provenance, pauses = None, BackgroundPauses()
        for batch in items:
            self._folded_bytes += batch.size_bytes
            if batch.records:
                for start in range(0, len(batch.records), RECORDS_PER_PAUSE):
                    delta.replay_all(batch.records[start : start + RECORDS_PER_PAUSE])
                    await pauses.here()
                provenance = Provenance(batch.last_offset, batch.epoch, batch.timestamp_ms)
        image = self._newest = self._newest if provenance is None else delta.finish(provenance)
        for _ in queued:
            self._queued.popleft()
        # Not `committed_offset`: more may have been committed during the pauses of the replay, and is not in this image.
        if not self._is_begun and not self.may_begin(items[-1].last_offset + 1):
            return
        if is_replacing or not self._is_begun:
            delta = MetadataDelta.between(self._published, image)
        if not self._is_begun or not _is_same(self._published, image):
            await self._publish(delta, image)
        self._published, self._is_begun = image, True
        self.published_offset = items[-1].last_offset + 1
        self._wake()
        size_bytes, self._folded_bytes = self._folded_bytes, 0
        self.snapshots.committed(image, size_bytes)

    @staticmethod
    def _open(
        queued: Sequence[tuple[MetadataBatch, bool]], base: MetadataImage
    ) -> tuple[MetadataDelta, list[MetadataBatch], bool]:
        """A delta for `queued` on `base`, the batches to replay into it, and whether they begin with a snapshot."""
        start = max((at for at, (_, is_snapshot) in enumerate(queued) if is_snapshot), default=None)
        items = [batch for batch, _ in queued[start or 0 :]]
        return MetadataDelta(base if start is None else MetadataImage()), items, start is not None

    def _wake(self) -> None:
        still: deque[tuple[int, asyncio.Future[None]]] = deque()
        while self._waiting:
            end_offset, published = self._waiting.popleft()
            if end_offset > self.published_offset:
                still.append((end_offset, published))
            elif not published.done():
                published.set_result(None)
        self._waiting = still

    def _fail(self, failure: BaseException) -> None:
        if not self.failure.done():
            self.failure.set_result(failure)
        waiting, self._waiting = self._waiting, deque()
        for _, published in waiting:
            if not published.done():
                published.set_exception(_has_failed(failure))

    # -- closing

    async def close(self) -> None:
        """Stop publishing and writing snapshots. Callers that still wait are refused."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self.snapshots.close()
        waiting, self._waiting = self._waiting, deque()
        for _, published in waiting:
            if not published.done():
                published.set_exception(_has_failed("it was stopped"))


def _is_same(base: MetadataImage, image: MetadataImage) -> bool:
    """Whether the records between two images changed nothing. An image shares what did not change, so identity tells."""
    return all(mine is theirs for mine, theirs in zip(base[1:], image[1:], strict=True))


def _has_failed(reason: BaseException | str) -> KafkaError:
    return KafkaError(
        ErrorCode.NOT_CONTROLLER,
        f"this node stops ({reason}); the change was made, but this node does not apply it: ask another, or after its restart",
    )
