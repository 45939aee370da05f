"""Drives the replica of a node: gives it one event at a time, and carries out the effects of each before the next one.

Owns the event queue, the replica's timer, the sync of the log and the connections to other replicas.

Order: an election is on disk before anything else of its step happens. A follower's records are synced before it fetches again;
the sync runs beside other events, and what is appended during a sync shares the next one.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ottla.broker.requests.context import Pending
from ottla.env.repeated_lines import RepeatedLines
from ottla.errors import CorruptRecords, DecodeError, LogDirectoryFailed, OttlaError
from ottla.errors.codes import ErrorCode, error_name
from ottla.raft import effects as fx
from ottla.raft.connections import NEVER_MS
from ottla.raft.quorum_state import write_quorum_state
from ottla.wire.base import UnsupportedVersion

if TYPE_CHECKING:
    from ottla.broker.node_links import NodeLinks
    from ottla.broker.runtime.metadata_log import MetadataBatch, MetadataLog
    from ottla.broker.runtime.quorum_delivery import CommitListener, Delivery, SnapshotListener
    from ottla.broker.runtime.quorum_links import QuorumLinks
    from ottla.broker.runtime.quorum_peers import QuorumPeers
    from ottla.env import World
    from ottla.raft.replica import Replica

logger = logging.getLogger("ottla.quorum")

LeaderListener = Callable[[int, int], None]
Event = Callable[[int], list[fx.Effect]]

_AWAITED = (fx.Persist, fx.Truncate, fx.StoreSnapshot)
_CHANGES = (fx.AppendControls, fx.AppendFetched, fx.Truncate, fx.StoreSnapshot)


class ReplicaRuntime:
    """Carries out what `replica` decides. `begin` comes first, then `start`."""

    def __init__(
        self,
        world: World,
        log: MetadataLog,
        delivery: Delivery,
        replica: Replica,
        peers: QuorumPeers,
        to_controllers: NodeLinks,
    ) -> None:
        self._world = world
        self._to_controllers = to_controllers
        self._peers = peers
        self._log = log
        self._delivery = delivery
        self._loop = asyncio.get_running_loop()
        self._events: deque[Event] = deque()
        self._is_busy = False
        self._is_draining = False
        self._is_closed = False
        self._is_started = False
        self._tasks: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._links: QuorumLinks | None = None
        self._syncing: asyncio.Task[Any] | None = None
        self._is_sync_due = False
        self._leader_changed: LeaderListener | None = None
        self.replica = replica
        self.led_epoch = -1
        """The last epoch in which this node has appended the first records of a leader."""
        self._complaints = RepeatedLines(world.clock, logger)
        self.failure: asyncio.Future[BaseException] = self._loop.create_future()
        """Set, with the reason, when nothing can be committed any more: the node must stop."""

    def now_ms(self) -> int:
        return int(self._loop.time() * 1000)

    async def begin(self, replica: Replica) -> None:
        """Start `replica`, and carry out its first effects; raises the reason if that fails."""
        self.replica = replica
        effects = replica.start(self.now_ms())
        self._is_busy = True
        await self._carry_out_awaiting(effects)
        if self.failure.done():
            raise self.failure.result()

    def start(
        self, committed: CommitListener, loaded_snapshot: SnapshotListener | None, leader_changed: LeaderListener | None
    ) -> None:
        """Sync, set timers and call the listeners from now on."""
        self._leader_changed = leader_changed
        self._is_started = True
        self._spawn(self._deliver(committed, loaded_snapshot))
        if self._is_sync_due:
            self._start_sync()
        if leader_changed is not None and self.replica.leader_id >= 0:
            leader_changed(self.replica.leader_id, self.replica.epoch)
        self._set_timer()

    def taken(self, batch: MetadataBatch) -> None:
        """A batch was appended: its voters apply at once, its records are passed on when they are committed."""
        for at, control in enumerate(batch.controls, start=batch.base_offset):
            self.replica.history.note(at, control)
        self._delivery.appended(batch)

    # -- events

    def submit(self, event: Event) -> None:
        """Give the replica an event, now or after the one whose effects are being carried out."""
        if self._is_closed or self.failure.done():
            return
        if self._is_busy:
            self._events.append(event)
            return
        self._is_busy = True
        try:
            effects = event(self.now_ms())
        except Exception as failure:
            self.fail(failure)
            return
        if any(isinstance(effect, _AWAITED) for effect in effects):
            self._spawn(self._carry_out_awaiting(effects))
        else:
            self._carry_out(effects)

    def _carry_out(self, effects: list[fx.Effect]) -> None:
        try:
            for effect in effects:
                self._do(effect)
        except Exception as failure:
            self.fail(failure)
        else:
            self._done(effects)

    async def _carry_out_awaiting(self, effects: list[fx.Effect]) -> None:
        try:
            for effect in effects:
                if isinstance(effect, _AWAITED):
                    await self._do_awaiting(effect)
                else:
                    self._do(effect)
        except Exception as failure:
            self.fail(failure)
        else:
            self._done(effects)

    def _done(self, effects: list[fx.Effect]) -> None:
        self._is_busy = False
        if any(isinstance(effect, _CHANGES) for effect in effects):
            self.submit(self.replica.log_changed)
        if self._is_draining:
            return  # called from the loop below, which goes on: one call per event would be too deep for a long queue
        self._is_draining = True
        while self._events and not self._is_busy:
            self.submit(self._events.popleft())
        self._is_draining = False
        self._set_timer()

    # -- effects

    async def _do_awaiting(self, effect: fx.Effect) -> None:
        if isinstance(effect, fx.Persist):
            history = self.replica.history
            write = write_quorum_state(
                self._world.disk, self._log.folder, effect.election, history.kraft_version, history.voters
            )
            try:
                await asyncio.gather(self._log.write_topic_id(), write)
            except OSError as error:
                raise self._log.partition_log.fail(error) from error
        elif isinstance(effect, fx.Truncate):
            logger.info("truncating the metadata log to offset %d: the leader has other records there", effect.offset)
            await self._log.truncate(effect.offset)
            self._delivery.truncated(self._log.end_offset)
        elif isinstance(effect, fx.StoreSnapshot):
            await self._store(effect)

    async def _store(self, effect: fx.StoreSnapshot) -> None:
        data = effect.data.read() if hasattr(effect.data, "read") else effect.data
        try:
            await self._log.snapshots.store(effect.snapshot_id, effect.position, data, effect.is_last)
        except OSError as error:
            raise self._log.partition_log.fail(error) from error
        if not effect.is_last:
            return
        await self._log.start_at(effect.snapshot_id)
        self.replica.history.clear()
        for control in self._log.snapshots.read(effect.snapshot_id).controls:
            self.replica.history.note(effect.snapshot_id.offset - 1, control)
        self._delivery.snapshot_loaded(effect.snapshot_id)
        logger.info("snapshot %s was fetched from the leader and replaces the metadata log", effect.snapshot_id)
        self.replica.snapshot_loaded()

    def _do(self, effect: fx.Effect) -> None:
        if isinstance(effect, fx.Sync):
            self._is_sync_due = True
            if self._is_started:
                self._start_sync()
        elif isinstance(effect, fx.Committed):
            self._log.committed(effect.offset)
            self._delivery.committed(effect.offset)
        elif isinstance(effect, fx.AppendControls):
            self.taken(self._log.append_controls(effect.controls, effect.epoch))
            self.led_epoch = effect.epoch
        elif isinstance(effect, fx.AppendFetched):
            self._append_fetched(effect)
        elif isinstance(effect, fx.Send):
            self._spawn(self._request(effect))
        elif isinstance(effect, fx.LeaderChanged):
            logger.info("epoch %d of the metadata quorum: leader %d", effect.epoch, effect.leader_id)
            if self._leader_changed is not None:
                self._leader_changed(effect.leader_id, effect.epoch)
        elif isinstance(effect, fx.Answer | fx.AnswerWithRecords | fx.AnswerWithSnapshot):
            self._answer(effect)
        elif isinstance(effect, fx.Disbelieved):
            text = "%s: refused. If no node of the quorum is so misled, a stranger reaches the controllers' port: close it"
            self._complaints.log(logging.WARNING, "disbelieved", text, effect.problem)

    def _answer(self, effect: fx.Answer | fx.AnswerWithRecords | fx.AnswerWithSnapshot) -> None:
        message: Any = effect.message
        settings = self.replica.settings
        if isinstance(effect, fx.AnswerWithRecords):
            found = self._log.partition_log.read(effect.offset, min(effect.max_bytes, settings.fetch_max_bytes))
            message.responses[0].partitions[0].records = b"" if found.records is None else found.records
        elif isinstance(effect, fx.AnswerWithSnapshot):
            size_bytes = min(effect.max_bytes, settings.fetch_snapshot_max_bytes)
            piece = self._log.snapshots.range(effect.snapshot_id, effect.position, size_bytes)
            message.topics[0].partitions[0].unaligned_records = piece
        assert isinstance(effect.token, Pending)
        effect.token.complete(message)

    def _append_fetched(self, effect: fx.AppendFetched) -> None:
        data = effect.data.read() if hasattr(effect.data, "read") else effect.data
        try:
            for batch in self._log.append_fetched(data, effect.epoch):
                self.taken(batch)
        except (CorruptRecords, DecodeError) as damage:
            logger.warning("records of the metadata log were damaged on the way and are fetched again: %s", damage)
            self.replica.back_off(self.replica.leader_id, self.now_ms())

    # -- requests to other replicas

    async def _request(self, send: fx.Send) -> None:
        from ottla.link import ConnectFailed, LinkEnded, NoCommonVersion  # late: a quorum of one sends nothing

        destination, correlation = send.destination, send.correlation
        try:
            response = await self._link().request(destination, send.message)
        except (NoCommonVersion, UnsupportedVersion) as unspoken:
            logger.debug("node %d at %s:%d: %s", *destination, unspoken)
            self.submit(lambda now_ms: self.replica.unspoken(destination.id, correlation, now_ms))
        except (OttlaError, OSError) as failure:
            logger.debug("node %d at %s:%d: %s", *destination, failure)
            self._peers.failed(destination, failure)
            is_refused = isinstance(failure, ConnectFailed) and failure.is_refused
            is_lost = isinstance(failure, LinkEnded)
            self.submit(lambda now_ms: self.replica.failed(destination.id, correlation, now_ms, is_refused, is_lost))
        else:
            _log_refusal(response)
            self._peers.answered(destination, response)
            self.submit(lambda now_ms: self.replica.received(destination.id, correlation, response, now_ms))

    def _link(self) -> QuorumLinks:
        if self._links is None:
            from ottla.broker.runtime.quorum_links import QuorumLinks  # late: a quorum of one needs none

            client_id = f"raft-client-{self.replica.local.id}"
            self._links = QuorumLinks(self._to_controllers, client_id, self.replica.settings.request_timeout_ms)
        return self._links

    # -- timers, syncs and listeners

    def _set_timer(self) -> None:
        deadline_ms = self.replica.deadline_ms
        if not self._is_started or deadline_ms >= NEVER_MS or self._is_closed or self._is_busy:
            return  # busy: the end of the step sets it, and a tick now would only wait, and set the timer again at once
        if self.failure.done():
            return  # no event is taken any more: the deadline would be past for ever, and the timer due at once
        due_s = deadline_ms / 1000 + 0.0005
        if self._timer is not None:
            if self._timer.when() <= due_s and not self._timer.cancelled():
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(due_s, self._tick)

    def _tick(self) -> None:
        self._timer = None
        if not self._is_busy:
            self.submit(self.replica.tick)
            self._set_timer()

    def _start_sync(self) -> None:
        if self._syncing is None:
            self._syncing = self._spawn(self._sync())

    async def _sync(self) -> None:
        try:
            self._is_sync_due = False
            end_offset = await self._log.sync()
        except Exception as failure:
            self.fail(failure)
            return
        self._syncing = None
        self.submit(lambda now_ms: self.replica.synced(end_offset, now_ms))

    async def _deliver(self, committed: CommitListener, loaded_snapshot: SnapshotListener | None) -> None:
        try:
            await self._delivery.run(committed, loaded_snapshot)
        except Exception as failure:
            self.fail(failure)

    def _spawn(self, work: Any) -> asyncio.Task[Any]:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # -- failing and closing

    def fail(self, failure: BaseException) -> None:
        """Commit nothing from now on; the node must stop."""
        if not self.failure.done():
            text = "the metadata log has failed" if isinstance(failure, LogDirectoryFailed) else "the controller has failed"
            logger.error("%s, so this node stops: %s", text, failure, exc_info=not isinstance(failure, OttlaError))
            self.failure.set_result(failure)

    def abort(self) -> None:
        """Stop at once, as a killed process would: nothing is sent or written any more."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        for task in list(self._tasks):
            task.cancel()
        if self._links is not None:
            self._links.close()


def _log_refusal(response: Any) -> None:
    """Log why the leader has refused what this replica asked about itself: it does not join, and an operator should know."""
    text = getattr(response, "error_message", None)
    if text and response.error_code != ErrorCode.NONE:
        logger.info("the leader has refused a change of the voters (%s): %s", error_name(response.error_code), text)
