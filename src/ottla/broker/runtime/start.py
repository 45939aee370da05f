"""Starts the metadata of a node: loads the log, takes part in the quorum, and waits until the metadata is published.

A node of several waits for the others without a limit: `unless_given_up` ends that when the node is asked to stop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ottla.broker.runtime.metadata_log import MetadataBatch
from ottla.broker.runtime.quorum_peers import WrongCluster
from ottla.errors import KafkaError, OttlaError

if TYPE_CHECKING:
    from ottla.broker.runtime.controller import ControllerRuntime
    from ottla.broker.runtime.metadata_loader import MetadataLoader
    from ottla.broker.runtime.quorum import QuorumRuntime
    from ottla.metadata.image.cluster import Endpoint
    from ottla.raft.snapshots import SnapshotContent, SnapshotId


logger = logging.getLogger("ottla.quorum")

_LOOK_S = 0.5
_MISSING_AFTER_S = 5.0
"""How long a start waits for other voters before it says which are missing."""
_MISSING_AGAIN_S = 30.0

_Result = TypeVar("_Result")


class StartGivenUp(OttlaError):
    """The node was told to stop while its start waited for other nodes."""


async def unless_given_up(waiting: Coroutine[Any, Any, _Result], given_up: asyncio.Event | None) -> _Result:
    """The result of `waiting`; cancels it and raises `StartGivenUp` if `given_up` is set before."""
    if given_up is None:
        return await waiting
    task, giving_up = asyncio.ensure_future(waiting), asyncio.ensure_future(given_up.wait())
    try:
        await asyncio.wait({task, giving_up}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise StartGivenUp("told to stop before the start was over: the other nodes were not there")
    finally:
        task.cancel()
        giving_up.cancel()
        await asyncio.wait({task, giving_up})


async def start_metadata(
    quorum: QuorumRuntime, loader: MetadataLoader, controller: ControllerRuntime, endpoints: Sequence[Endpoint]
) -> None:
    """Lead a quorum of one. Returns when the controller is active and its first records are published.

    Raises the reason if that fails. `endpoints` are this controller's listeners.
    """
    loader.load(quorum.load())
    await quorum.elect({endpoint.name: (endpoint.host, endpoint.port) for endpoint in endpoints} or None)
    loader.start()
    follow_quorum(quorum, Listeners(loader, controller))
    await controller.wait_active()
    await _published(quorum, loader, quorum.end_offset)


async def join_metadata(
    quorum: QuorumRuntime, loader: MetadataLoader, controller: ControllerRuntime, endpoints: Sequence[Endpoint]
) -> None:
    """Take part in a quorum of any size. Returns when requests of other nodes can be answered; `wait_joined` has to follow."""
    await quorum.join({endpoint.name: (endpoint.host, endpoint.port) for endpoint in endpoints} or None)
    loader.may_begin = quorum.replica.has_caught_up
    loader.start()
    follow_quorum(quorum, Listeners(loader, controller))


async def wait_joined(quorum: QuorumRuntime, loader: MetadataLoader) -> None:
    """Wait until the quorum has a leader and this node has published what is committed; raises the reason if that fails.

    Logs which voters are missing. Raises `WrongCluster` if most of them belong to another cluster.
    """
    # A leader's first record is committed before anything else.
    joining, watching = asyncio.ensure_future(_published(quorum, loader, 1)), asyncio.ensure_future(_watch(quorum))
    try:
        done, _ = await asyncio.wait({joining, watching}, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        joining.cancel()
        watching.cancel()
        await asyncio.wait({joining, watching})


async def _watch(quorum: QuorumRuntime) -> None:
    """Tell the operator from time to time why there is no leader; raises `WrongCluster`."""
    loop = asyncio.get_running_loop()
    next_s = loop.time() + _MISSING_AFTER_S
    while True:
        await asyncio.sleep(_LOOK_S)
        bootstrap = quorum.settings.bootstrap_servers
        reason = quorum.peers.wrong_cluster(quorum.voters, bootstrap)
        if reason is not None:
            raise WrongCluster(reason)
        if loop.time() < next_s:
            continue
        missing = quorum.peers.missing(quorum.voters, quorum.node_id, bootstrap)
        if quorum.leader_id >= 0:
            logger.warning("still waiting for the metadata of the leader, node %d", quorum.leader_id)
        elif missing is not None:
            logger.warning("still waiting for a controller: %s", missing)
        else:
            continue
        next_s = loop.time() + _MISSING_AGAIN_S


def follow_quorum(quorum: QuorumRuntime, listeners: Listeners) -> None:
    """Start the quorum, with plain calls to `listeners`."""

    async def committed(batches: Sequence[MetadataBatch]) -> None:
        listeners.committed(batches)

    async def loaded_snapshot(snapshot_id: SnapshotId, content: SnapshotContent) -> None:
        last_offset, epoch = snapshot_id.offset - 1, snapshot_id.epoch
        listeners.loaded_snapshot(MetadataBatch(0, last_offset, epoch, content.timestamp_ms, 0, content.records))

    def leader_changed(leader_id: int, epoch: int) -> None:
        listeners.leader_changed(leader_id if leader_id >= 0 else None, epoch)

    quorum.start(committed, loaded_snapshot, leader_changed)


async def _published(quorum: QuorumRuntime, loader: MetadataLoader, end_offset: int) -> None:
    """Wait until everything below `end_offset` is published; raise the reason if it cannot be."""
    published = loader.published_up_to(end_offset)
    waited: list[asyncio.Future[Any]] = [published, quorum.failure]
    try:
        await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        published.cancel()  # or the loader refuses it when it closes, and nobody looks
        raise
    if quorum.failure.done():
        published.cancel()
        raise quorum.failure.result()
    try:
        published.result()
    except KafkaError:
        raise loader.failure.result() from None


class QuorumListener(Protocol):
    """Follows the committed metadata log and its leader."""

    def committed(self, batches: Sequence[MetadataBatch]) -> None:
        """`batches` are committed; they follow what was committed before. Control batches are among them."""
        ...

    def loaded_snapshot(self, snapshot: MetadataBatch) -> None:
        """A snapshot of another node has replaced the log: its records are all there is up to its last offset."""
        ...

    def leader_changed(self, leader_id: int | None, epoch: int) -> None:
        """The quorum has another leader or epoch. None: no leader is known in this epoch.

        A new leader has not committed anything in its epoch yet. Its control batch, the first one of `epoch`, is committed
        together with everything before it.
        """
        ...


class Listeners:
    """Passes every call on to several listeners, in their order."""

    def __init__(self, *listeners: QuorumListener) -> None:
        self._listeners = listeners

    def committed(self, batches: Sequence[MetadataBatch]) -> None:
        for each in self._listeners:
            each.committed(batches)

    def loaded_snapshot(self, snapshot: MetadataBatch) -> None:
        for each in self._listeners:
            each.loaded_snapshot(snapshot)

    def leader_changed(self, leader_id: int | None, epoch: int) -> None:
        for each in self._listeners:
            each.leader_changed(leader_id, epoch)
