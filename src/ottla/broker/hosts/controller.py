"""The active controller of this node: makes decisions on the newest state, commits them, publishes them, then answers.

Owns the `ControllerState` and the image that was last published. A decision's records are replayed and appended at once, so
that the next decision builds on them. When they are committed they are published, and then their caller is answered. Changes
are published and callers answered in the order of the log.

Loop rule: deciding and appending is one plain call, nothing comes between. Publishing is awaited, one change after the other.
If a commit or a publish fails, the node stops: the state is then ahead of the disk, and no decision may build on it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ottla.broker.hosts import activation
from ottla.broker.hosts.snapshot_writer import SnapshotWriter
from ottla.errors import KafkaError, LogDirectoryFailed
from ottla.errors.codes import ErrorCode
from ottla.metadata.controller.apis import decision_of
from ottla.metadata.controller.decision import Decision
from ottla.metadata.controller.state import ControllerSettings, ControllerState
from ottla.metadata.image.cluster import Endpoint
from ottla.metadata.image.delta import MetadataDelta
from ottla.metadata.image.image import MetadataImage, Provenance
from ottla.wire.base import Message

if TYPE_CHECKING:
    from ottla.broker.hosts.metadata_log import MetadataBatch
    from ottla.broker.hosts.quorum import QuorumHost
    from ottla.config.broker import BrokerConfig
    from ottla.env import World

logger = logging.getLogger("ottla.controller")

R = TypeVar("R")
Publish = Callable[[MetadataDelta, MetadataImage], Awaitable[None]]


class ControllerHost:
    """The controller of one node. `start` makes it active; `write` works from then on."""

    def __init__(
        self, world: World, config: BrokerConfig, settings: ControllerSettings, quorum: QuorumHost, publish: Publish
    ) -> None:
        self._world = world
        self._config = config
        self._quorum = quorum
        self._publish = publish
        self._published = MetadataImage()
        self._published_offset = 0
        self._loaded: tuple[MetadataDelta, MetadataImage] | None = None
        """The metadata loaded at the start, until it is published."""
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._snapshots = SnapshotWriter(world.clock, config, quorum)
        self.state = ControllerState(settings, world.randomness)
        """The newest state. Decisions are made on it; its newest records may not be committed yet."""

    @property
    def is_active(self) -> bool:
        return self._quorum.is_leader and not self._quorum.failure.done()

    @property
    def epoch(self) -> int:
        """The controller epoch: the quorum's epoch in which it was elected."""
        return self._quorum.epoch

    @property
    def published(self) -> MetadataImage:
        """The image that was last published."""
        return self._published

    # -- starting

    async def start(self, endpoints: Sequence[Endpoint]) -> None:
        """Load the log, be elected, and write the records of a new controller; returns when they are published.

        `endpoints` are this controller's listeners.
        """
        image = self._load()
        await self._quorum.elect({endpoint.name: (endpoint.host, endpoint.port) for endpoint in endpoints} or None)
        self.state = ControllerState(self.state.settings, self._world.randomness, image, self._quorum.kraft_version)
        self.state.quorum_node_ids = self._quorum.voters.ids
        self.state.next_offset = self._quorum.end_offset
        self._activate(endpoints)
        published = self._published_up_to(self._quorum.end_offset)
        self._quorum.start(self._committed)
        self._quorum.failure.add_done_callback(self._failed)
        try:
            await published
        except KafkaError:
            raise self._quorum.failure.result() from None

    def _load(self) -> MetadataImage:
        """Load snapshot and log into an image; also keeps the delta, to publish it once it is committed."""
        delta, provenance, size_bytes = MetadataDelta(MetadataImage()), Provenance(), 0
        for batch in self._quorum.load():
            delta.replay_all(batch.records)
            provenance = Provenance(batch.last_offset, batch.epoch, batch.timestamp_ms)
            size_bytes += batch.size_bytes
        image = delta.finish(provenance)
        self._loaded = (delta, image)
        self._snapshots.loaded(size_bytes)
        return image

    def _activate(self, endpoints: Sequence[Endpoint]) -> None:
        image = self.state.image
        if activation.is_new_cluster(image):
            bootstrap = activation.read_bootstrap(self._world.disk, self._config.log.metadata_log_dir)
            is_cut_short = image.open_transaction is not None
            self._append(activation.first_records(bootstrap, is_cut_short, self._config.min_insync_replicas))
        else:
            self._append(activation.later_records(image))
        settings = self.state.settings
        incarnation_id = self._world.randomness.new_uuid()
        self._append(
            activation.registration(self.state.image, settings.node_id, incarnation_id, endpoints, settings.supported_features)
        )
        self.state.activate(self._now_ms())
        logger.info("controller %d is active in epoch %d", settings.node_id, self.epoch)

    # -- writing

    async def call(self, request: Message, version: int) -> Any:
        """The response to a request of an API in `metadata/controller/apis.py`, once its records are committed.

        Raises the `KafkaError` with which the decision refuses the request as a whole; nothing is written then.
        """
        decide = decision_of(request.KEY)
        return await self.write(lambda state, now_ms: decide(state, request, now_ms, version))

    async def write(self, decide: Callable[[ControllerState, int], Decision[R]]) -> R:
        """The response of `decide(state, now_ms)`, once its records are committed and published.

        A `KafkaError` that `decide` raises goes to the caller, and nothing is written. `now_ms` is from the monotonic clock.
        """
        if not self.is_active:
            raise KafkaError(
                ErrorCode.NOT_CONTROLLER, f"node {self._quorum.node_id} is not the active controller: ask again later"
            )
        decision = decide(self.state, self._now_ms())
        try:
            self._append(decision.records)
        except LogDirectoryFailed as failed:
            raise _has_failed(failed) from failed
        await self._published_up_to(self._quorum.end_offset)
        return decision.response

    def _append(self, records: Sequence[Message]) -> None:
        if not records:
            return
        change = self._quorum.prepare(records, self.state.image.metadata_version)
        try:
            # Replayed before it is appended: a log with a record that cannot be replayed could never be read again.
            for batch in change.batches:
                self.state.replay(batch.records, batch.base_offset, batch.epoch, batch.timestamp_ms)
            self._quorum.append(change)
        except Exception as failure:
            self._quorum.fail(failure)  # the state may be ahead of the log now: no decision may build on it
            raise

    def _now_ms(self) -> int:
        return int(self._world.clock.monotonic_s() * 1000)

    # -- committing

    def _published_up_to(self, end_offset: int) -> asyncio.Future[None]:
        """A future that is done when everything below `end_offset` is committed and published."""
        published: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if end_offset <= self._published_offset:
            published.set_result(None)
        else:
            self._waiting.append((end_offset, published))
        return published

    async def _committed(self, batches: Sequence[MetadataBatch]) -> None:
        """The quorum has committed `batches`: publish them, then answer the callers that wait for them."""
        if self._loaded is not None:
            loaded, image = self._loaded
            await self._publish(loaded, image)
            self._published, self._loaded = image, None
        delta, provenance, size_bytes = MetadataDelta(self._published), None, 0
        for batch in batches:
            size_bytes += batch.size_bytes
            if batch.records:
                delta.replay_all(batch.records)
                provenance = Provenance(batch.last_offset, batch.epoch, batch.timestamp_ms)
        if provenance is not None:
            image = delta.finish(provenance)
            await self._publish(delta, image)
            self._published = image
        self._published_offset = batches[-1].last_offset + 1
        while self._waiting and self._waiting[0][0] <= self._published_offset:
            _, published = self._waiting.popleft()
            if not published.done():
                published.set_result(None)
        self._snapshots.committed(self._published, size_bytes)

    def _failed(self, failure: asyncio.Future[BaseException]) -> None:
        """Fail all waiting callers: their changes may or may not be on disk."""
        waiting, self._waiting = self._waiting, deque()
        for _, published in waiting:
            if not published.done():
                published.set_exception(_has_failed(failure.result()))

    # -- closing

    async def close(self) -> None:
        """Stop writing snapshots; the quorum is closed by its owner."""
        await self._snapshots.close()


def _has_failed(reason: BaseException) -> KafkaError:
    return KafkaError(
        ErrorCode.NOT_CONTROLLER,
        f"the controller has failed and its node stops ({reason}); the change may or may not have been made: check before "
        "you try again",
    )
