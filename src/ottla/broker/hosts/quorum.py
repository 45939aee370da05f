"""The Raft quorum on this node: opens the metadata log and drives its replica (`ottla.raft.replica`).

Owns the metadata log, the voters from its records, and the quorum-state file. The replica decides, and this file acts: it gives
it requests, answers, timers and ends of syncs as events, and carries out the effects of each event before the next one.

Order: an election is on disk before anything else of its step happens. A follower's records are synced before it fetches again;
the sync runs beside other events, and what is appended during a sync shares the next one. Committed batches are passed on by a
task of their own, in the order of the log, one call at a time: a slow listener delays no commit.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ottla.broker.hosts.metadata_log import MetadataBatch, MetadataLog, PreparedChange, log_config
from ottla.broker.hosts.quorum_delivery import CommitListener, Delivery, SnapshotListener
from ottla.broker.hosts.quorum_facts import QuorumFacts, facts_of
from ottla.broker.hosts.quorum_peers import QuorumPeers
from ottla.broker.hosts.quorum_settings import check_alone, raft_settings
from ottla.broker.request import Pending
from ottla.errors import CorruptRecords, DecodeError, KafkaError, LogDirectoryFailed, OttlaError
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid
from ottla.raft import effects as fx
from ottla.raft.connections import NEVER_MS
from ottla.raft.quorum_state import read_quorum_state, write_quorum_state
from ottla.raft.replica import Inbound, Replica
from ottla.raft.roles.leader import Leader
from ottla.raft.roles.resigned import Resigned
from ottla.raft.settings import RaftSettings
from ottla.raft.voter_history import VoterHistory
from ottla.raft.voters import Endpoints, ReplicaKey, VoterSet, static_voters
from ottla.wire.base import Message

if TYPE_CHECKING:
    from ottla.broker.hosts.quorum_links import QuorumLinks
    from ottla.config.broker import BrokerConfig
    from ottla.env import World

logger = logging.getLogger("ottla.quorum")

LeaderListener = Callable[[int, int], None]

_RESIGN_S_MAX = 2.0
"""How long a stopping leader waits for the other voters to hear of it."""
_AWAITED = (fx.Persist, fx.Truncate, fx.StoreSnapshot)
_CHANGES = (fx.AppendControls, fx.AppendFetched, fx.Truncate, fx.StoreSnapshot)


class RaftPending(Pending):
    """A request to this replica, parked until the replica answers it."""

    __slots__ = ("_host",)

    def __init__(self, host: QuorumHost) -> None:
        super().__init__()
        self._host = host

    def abandon(self) -> None:
        super().abandon()
        self._host.replica.abandoned(self)


class QuorumHost:
    """This node's replica of the metadata log.

    A quorum of one: `open`, `load`, `elect`, `start`. Any other: `open`, `join`, `start`. Then `prepare` and `append` work
    while this node leads.
    """

    def __init__(
        self, world: World, metadata_log: MetadataLog, local: ReplicaKey, settings: RaftSettings, voters: VoterSet
    ) -> None:
        self._world = world
        self._local = local
        self._loop = asyncio.get_running_loop()
        self._history = VoterHistory(voters)
        self._events: deque[Callable[[int], list[fx.Effect]]] = deque()
        self._is_busy = False
        self._is_closed = False
        self._tasks: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._links: QuorumLinks | None = None
        self._syncing: asyncio.Task[Any] | None = None
        self._is_sync_due = False
        self._is_started = False
        self._led_epoch = -1
        self._delivery = Delivery(metadata_log)
        self._leader_changed: LeaderListener | None = None
        self.log = metadata_log
        self.settings = settings
        self.peers = QuorumPeers(settings.cluster_id)
        self.replica = Replica(local, settings, self._history, metadata_log, world.randomness.below)
        self.failure: asyncio.Future[BaseException] = self._loop.create_future()
        """Set, with the reason, when nothing can be committed any more: the node must stop."""

    @classmethod
    async def open(cls, world: World, config: BrokerConfig, directory_id: Uuid, cluster_id: str | None = None) -> QuorumHost:
        """Open the metadata log of a formatted directory, whose lock the caller holds.

        Raises `LogDirectoryFailed` if the disk fails, `CorruptFile` if a file is damaged.
        """
        metadata_log = await MetadataLog.open(world, config.log.metadata_log_dir, log_config(config))
        voters = static_voters(config.controller_quorum_voters, config.controller_listener_names[0])
        local = ReplicaKey(config.node_id, directory_id)
        return cls(world, metadata_log, local, raft_settings(config, cluster_id), voters)

    # -- state

    @property
    def node_id(self) -> int:
        return self._local.id

    @property
    def epoch(self) -> int:
        return self.replica.epoch

    @property
    def leader_id(self) -> int:
        """The leader as far as this replica knows, else -1."""
        return self.replica.leader_id

    @property
    def is_leader(self) -> bool:
        """Whether this node leads, and has appended the first records of its epoch."""
        return isinstance(self.replica.role, Leader) and self._led_epoch == self.replica.epoch

    @property
    def voters(self) -> VoterSet:
        return self._history.voters

    @property
    def kraft_version(self) -> int:
        return self._history.kraft_version

    @property
    def end_offset(self) -> int:
        return self.log.end_offset

    @property
    def is_alone(self) -> bool:
        """Whether this node can be the only voter, by the settings and the files; before `load` and `join`."""
        history = VoterHistory(self._history.voters)
        self._note_voters(history)
        return len(history.voters) <= 1

    def _note_voters(self, history: VoterHistory) -> None:
        """Note the voters of the newest snapshot and of the log after it."""
        latest, start_offset = self.log.snapshots.latest, self.log.start_offset
        if latest is not None:
            for control in self.log.snapshots.read(latest).controls:
                history.note(latest.offset - 1, control)
            start_offset = max(latest.offset, start_offset)
        for at, control in self.log.controls(start_offset):
            history.note(at, control)

    def voters_before(self, offset: int) -> tuple[int, VoterSet]:
        """kraft.version and voters, for a snapshot that covers everything below `offset`."""
        return self._history.kraft_version_before(offset), self._history.voters_before(offset)

    def facts(self) -> QuorumFacts:
        """The current state of the quorum."""
        return facts_of(self.replica, self._world.clock.now_ms(), self._now_ms())

    def _now_ms(self) -> int:
        return int(self._loop.time() * 1000)

    # -- starting

    def load(self) -> Iterator[MetadataBatch]:
        """The batches of the newest snapshot and of the log after it, in order. Has to be read to its end before `elect`.

        Only for a quorum of one: there, records that were not committed before are committed with the leader's first record.
        """
        offset = 0
        latest = self.log.snapshots.latest
        if latest is not None:
            content = self.log.snapshots.read(latest)
            for control in content.controls:
                self._history.note(latest.offset - 1, control)
            offset = latest.offset
            if content.records:
                yield MetadataBatch(0, offset - 1, latest.epoch, content.timestamp_ms, 0, content.records)
        for batch in self.log.batches(max(offset, self.log.start_offset)):
            for at, control in enumerate(batch.controls, start=batch.base_offset):
                self._history.note(at, control)
            if batch.records:
                yield batch
        self._delivery.passed_on = self.end_offset

    async def elect(self, endpoints: Endpoints | None = None) -> None:
        """Lead the quorum of one, in a new epoch; raises `NotAQuorumOfOne` if this node is not the only voter.

        `endpoints` are the controller's current listeners, if known; the voter record is updated if they have changed.
        """
        check_alone(self.voters, self._local, self.log.folder)
        await self._begin(endpoints)
        logger.info("leading the metadata quorum in epoch %d from offset %d on", self.epoch, self.end_offset)

    async def join(self, endpoints: Endpoints | None = None) -> None:
        """Take part in the quorum, as a voter or as an observer. `start` has to follow; listeners get all that is committed.

        `endpoints` are this controller's listeners.
        """
        self._note_voters(self._history)
        latest = self.log.snapshots.latest
        if latest is not None and latest.offset > 0:
            self._delivery.snapshot_loaded(latest)
        if len(self.voters) and len(self.voters) % 2 == 0:
            logger.warning(
                "the metadata quorum has %d voters, an even number: it survives no more failures than with one voter less",
                len(self.voters),
            )
        await self._begin(endpoints)

    async def _begin(self, endpoints: Endpoints | None) -> None:
        election = read_quorum_state(self._world.disk, self.log.folder)
        self.settings = self.settings._replace(endpoints=endpoints or {})
        self.replica = Replica(self._local, self.settings, self._history, self.log, self._world.randomness.below, election)
        effects = self.replica.start(self._now_ms())
        self._is_busy = True
        await self._carry_out_awaiting(effects)
        if self.failure.done():
            raise self.failure.result()

    def start(
        self,
        committed: CommitListener,
        loaded_snapshot: SnapshotListener | None = None,
        leader_changed: LeaderListener | None = None,
    ) -> None:
        """Start to commit, and call the listeners: `committed` with batches in the order of the log, `loaded_snapshot` when a
        snapshot takes the place of all before, `leader_changed` with the leader's id (-1: none) and its epoch.
        """
        self._leader_changed = leader_changed
        self._is_started = True
        self._spawn(self._deliver(committed, loaded_snapshot))
        if self._is_sync_due:
            self._start_sync()
        if leader_changed is not None and self.replica.leader_id >= 0:
            leader_changed(self.replica.leader_id, self.replica.epoch)
        self._set_timer()

    # -- requests and appends

    def ask(self, request: Message, version: int, listener: str) -> Pending:
        """Give the replica a request that came through `listener`; it completes the `Pending`."""
        pending = RaftPending(self)
        inbound = Inbound(pending, request, version, listener)
        self._submit(lambda now_ms: self.replica.asked(inbound, now_ms))
        return pending

    def prepare(self, records: Sequence[Message], metadata_version: int) -> PreparedChange:
        """Encode one change for the current log end; raises NOT_CONTROLLER unless this node leads."""
        if not self.is_leader or self.failure.done():
            raise KafkaError(
                ErrorCode.NOT_CONTROLLER, f"node {self.node_id} does not lead the metadata quorum: ask the controller that does"
            )
        return self.log.prepare(records, metadata_version, self.epoch)

    def append(self, change: PreparedChange) -> None:
        """Append the change that was just prepared; it is committed once a majority of voters has synced it."""
        self.log.append(change)
        for batch in change.batches:
            self._take(batch)
        self._submit(self.replica.log_changed)

    def _take(self, batch: MetadataBatch) -> None:
        for at, control in enumerate(batch.controls, start=batch.base_offset):
            self._history.note(at, control)
        self._delivery.appended(batch)

    # -- events and effects

    def _submit(self, event: Callable[[int], list[fx.Effect]]) -> None:
        """Give the replica an event, now or after the one whose effects are being carried out."""
        if self._is_closed or self.failure.done():
            return
        if self._is_busy:
            self._events.append(event)
            return
        self._is_busy = True
        try:
            effects = event(self._now_ms())
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
            self._submit(self.replica.log_changed)
        while self._events and not self._is_busy:
            self._submit(self._events.popleft())
        self._set_timer()

    async def _do_awaiting(self, effect: fx.Effect) -> None:
        if isinstance(effect, fx.Persist):
            disk, folder = self._world.disk, self.log.folder
            write = write_quorum_state(disk, folder, effect.election, self.kraft_version, self.voters)
            try:
                await asyncio.gather(self.log.write_topic_id(), write)
            except OSError as error:
                raise self.log.partition_log.fail(error) from error
        elif isinstance(effect, fx.Truncate):
            logger.info("truncating the metadata log to offset %d: the leader has other records there", effect.offset)
            await self.log.truncate(effect.offset)
            self._delivery.truncated(self.end_offset)
        elif isinstance(effect, fx.StoreSnapshot):
            await self._store(effect)

    async def _store(self, effect: fx.StoreSnapshot) -> None:
        data = effect.data.read() if hasattr(effect.data, "read") else effect.data
        try:
            await self.log.snapshots.store(effect.snapshot_id, effect.position, data, effect.is_last)
        except OSError as error:
            raise self.log.partition_log.fail(error) from error
        if not effect.is_last:
            return
        await self.log.start_at(effect.snapshot_id)
        self._history.clear()
        for control in self.log.snapshots.read(effect.snapshot_id).controls:
            self._history.note(effect.snapshot_id.offset - 1, control)
        self._delivery.snapshot_loaded(effect.snapshot_id)
        logger.info("snapshot %s was fetched from the leader and replaces the metadata log", effect.snapshot_id)
        self.replica.snapshot_loaded()

    def _do(self, effect: fx.Effect) -> None:
        if isinstance(effect, fx.Sync):
            self._is_sync_due = True
            if self._is_started:
                self._start_sync()
        elif isinstance(effect, fx.Committed):
            self.log.committed(effect.offset)
            self._delivery.committed(effect.offset)
        elif isinstance(effect, fx.AppendControls):
            self._take(self.log.append_controls(effect.controls, effect.epoch))
            self._led_epoch = effect.epoch
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

    def _answer(self, effect: fx.Answer | fx.AnswerWithRecords | fx.AnswerWithSnapshot) -> None:
        message: Any = effect.message
        if isinstance(effect, fx.AnswerWithRecords):
            found = self.log.partition_log.read(effect.offset, min(effect.max_bytes, self.settings.fetch_max_bytes))
            message.responses[0].partitions[0].records = b"" if found.records is None else found.records
        elif isinstance(effect, fx.AnswerWithSnapshot):
            size_bytes = min(effect.max_bytes, self.settings.fetch_snapshot_max_bytes)
            piece = self.log.snapshots.range(effect.snapshot_id, effect.position, size_bytes)
            message.topics[0].partitions[0].unaligned_records = piece
        assert isinstance(effect.token, Pending)
        effect.token.complete(message)

    def _append_fetched(self, effect: fx.AppendFetched) -> None:
        data = effect.data.read() if hasattr(effect.data, "read") else effect.data
        try:
            for batch in self.log.append_fetched(data, effect.epoch):
                self._take(batch)
        except (CorruptRecords, DecodeError) as damage:
            logger.warning("records of the metadata log were damaged on the way and are fetched again: %s", damage)
            self.replica.back_off(self.replica.leader_id, self._now_ms())

    async def _request(self, send: fx.Send) -> None:
        destination, correlation = send.destination, send.correlation
        try:
            response = await self._link().request(destination, send.message)
        except (OttlaError, OSError) as failure:
            logger.debug("node %d at %s:%d: %s", destination.id, destination.host, destination.port, failure)
            self.peers.failed(destination, failure)
            self._submit(lambda now_ms: self.replica.failed(destination.id, correlation, now_ms))
        else:
            self.peers.answered(destination, response)
            self._submit(lambda now_ms: self.replica.received(destination.id, correlation, response, now_ms))

    def _link(self) -> QuorumLinks:
        if self._links is None:
            from ottla.broker.hosts.quorum_links import QuorumLinks  # late: a quorum of one needs none

            client_id = f"raft-client-{self.node_id}"
            self._links = QuorumLinks(self._world.network, client_id, self.settings.request_timeout_ms)
        return self._links

    # -- timers, syncs and listeners

    def _set_timer(self) -> None:
        deadline_ms = self.replica.deadline_ms
        if not self._is_started or deadline_ms >= NEVER_MS or self._is_closed:
            return
        due_s = deadline_ms / 1000 + 0.0005
        if self._timer is not None:
            if self._timer.when() <= due_s and not self._timer.cancelled():
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(due_s, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._submit(self.replica.tick)
        self._set_timer()

    def _start_sync(self) -> None:
        if self._syncing is None:
            self._syncing = self._spawn(self._sync())

    async def _sync(self) -> None:
        try:
            self._is_sync_due = False
            end_offset = await self.log.sync()
        except Exception as failure:
            self.fail(failure)
            return
        self._syncing = None
        self._submit(lambda now_ms: self.replica.synced(end_offset, now_ms))

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

    async def close(self) -> None:
        """Resign and close the log; appended records are flushed, but no listener is called any more."""
        if isinstance(self.replica.role, Leader) and not self.failure.done():
            self.peers.down.clear()
            self._submit(self.replica.stop)
            await self._leave()
        self.abort()
        if not self.failure.done():
            await self.log.close()

    async def _leave(self) -> None:
        """Wait until the other voters know that this leader resigns, or for a short time. Some may be down."""
        deadline_s = self._loop.time() + _RESIGN_S_MAX
        while isinstance(role := self.replica.role, Resigned) and not self.failure.done():
            if self._loop.time() > deadline_s or all(voter.id in self.peers.down for voter in role.unacknowledged):
                return
            await asyncio.sleep(0.01)

    def abort(self) -> None:
        """Stop at once, as a killed process would: nothing is sent or written any more."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        for task in list(self._tasks):
            task.cancel()
        if self._links is not None:
            self._links.close()
