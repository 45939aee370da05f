"""The Raft quorum on this node: opens the metadata log, and takes requests and appends for its replica.

Owns the metadata log and the voters from its records. The replica (`ottla.raft.replica`) decides, and `replica.py` acts.
Committed batches are passed on by a task of their own, in the order of the log, one call at a time: a slow listener delays no
commit. A replica's settings are made from the node's here, too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ottla.broker.node_links import NodeLinks
from ottla.broker.requests.context import Pending
from ottla.broker.runtime.metadata_log import MetadataBatch, MetadataLog, PreparedChange, log_config
from ottla.broker.runtime.quorum_delivery import CommitListener, Delivery, SnapshotListener
from ottla.broker.runtime.quorum_facts import QuorumFacts, facts_of
from ottla.broker.runtime.quorum_peers import QuorumPeers
from ottla.broker.runtime.replica import LeaderListener, ReplicaRuntime
from ottla.errors import KafkaError, OttlaError
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid
from ottla.raft.epochs import recovered
from ottla.raft.quorum_state import read_quorum_state
from ottla.raft.replica import Inbound, Replica
from ottla.raft.roles.leader import Leader
from ottla.raft.roles.resigned import Resigned
from ottla.raft.settings import RaftSettings
from ottla.raft.voter_history import VoterHistory, refuse_upgrade, upgrade_records
from ottla.raft.voters import Endpoints, ReplicaKey, VoterSet, static_voters
from ottla.wire.base import Message

if TYPE_CHECKING:
    from ottla.config.broker import BrokerConfig
    from ottla.env import World

logger = logging.getLogger("ottla.quorum")

_RESIGN_S_MAX = 2.0
"""How long a stopping leader waits for the other voters to hear of it."""


class RaftPending(Pending):
    """A request to this replica, parked until the replica answers it."""

    __slots__ = ("_host",)

    def __init__(self, host: QuorumRuntime) -> None:
        super().__init__()
        self._host = host

    def abandon(self) -> None:
        super().abandon()
        self._host.replica.abandoned(self)


class QuorumRuntime:
    """This node's replica of the metadata log.

    A quorum of one: `open`, `load`, `elect`, `start`. Any other: `open`, `join`, `start`. Then `prepare` and `append` work
    while this node leads.
    """

    def __init__(
        self,
        world: World,
        metadata_log: MetadataLog,
        local: ReplicaKey,
        settings: RaftSettings,
        voters: VoterSet,
        to_controllers: NodeLinks,
    ) -> None:
        self._world = world
        self._local = local
        self._history = VoterHistory(voters)
        self._delivery = Delivery(metadata_log)
        self.log = metadata_log
        self.settings = settings
        self.peers = QuorumPeers(settings.cluster_id)
        replica = Replica(local, settings, self._history, metadata_log, world.randomness.below)
        self._driver = ReplicaRuntime(world, metadata_log, self._delivery, replica, self.peers, to_controllers)

    @classmethod
    async def open(
        cls,
        world: World,
        config: BrokerConfig,
        directory_id: Uuid,
        cluster_id: str | None = None,
        to_controllers: NodeLinks | None = None,
    ) -> QuorumRuntime:
        """Open the metadata log of a formatted directory, whose lock the caller holds.

        `to_controllers` makes the links to other voters; without it they have the security that `config` says.

        Raises `LogDirectoryFailed` if the disk fails, `CorruptFile` if a file is damaged.
        """
        metadata_log = await MetadataLog.open(world, config.log.metadata_log_dir, log_config(config))
        voters = static_voters(config.controller_quorum_voters, config.controller_listener_names[0])
        local = ReplicaKey(config.node_id, directory_id)
        if to_controllers is None:
            to_controllers = NodeLinks(world.network, world.randomness, lambda: config.controllers_security)
        return cls(world, metadata_log, local, raft_settings(config, cluster_id), voters, to_controllers)

    # -- state

    @property
    def replica(self) -> Replica:
        return self._driver.replica

    @property
    def failure(self) -> asyncio.Future[BaseException]:
        """Set, with the reason, when nothing can be committed any more: the node must stop."""
        return self._driver.failure

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
        return isinstance(self.replica.role, Leader) and self._driver.led_epoch == self.replica.epoch

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
        """Whether this node is its whole quorum, by the settings and the files; before `load` and `join`.

        With other bootstrap servers it is not: it joins their quorum later, or they join this one.
        """
        history = VoterHistory(self._history.voters)
        self._note_voters(history)
        has_others = any(voter.key.id != self._local.id for voter in history.voters)
        return not has_others and not self.settings.bootstrap_servers

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
        return facts_of(self.replica, self._world.clock.now_ms(), self._driver.now_ms())

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
        self.settings = self.settings._replace(can_grow=False)
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
        found = read_quorum_state(self._world.disk, self.log.folder)
        election = recovered(found, self.log.last_epoch)
        if found is not None and election is not None and election != found:
            logger.warning(
                "quorum-state in %s has epoch %d, which no election can have reached: a forged request raised it. This node "
                "begins with epoch %d, well above the last one of its log, %d",
                self.log.folder, found.epoch, election.epoch, self.log.last_epoch,
            )  # fmt: skip
        self.settings = self.settings._replace(endpoints=endpoints or {})
        replica = Replica(self._local, self.settings, self._history, self.log, self._world.randomness.below, election)
        await self._driver.begin(replica)

    def start(
        self,
        committed: CommitListener,
        loaded_snapshot: SnapshotListener | None = None,
        leader_changed: LeaderListener | None = None,
    ) -> None:
        """Start to commit, and call the listeners: `committed` with batches in the order of the log, `loaded_snapshot` when a
        snapshot takes the place of all before, `leader_changed` with the leader's id (-1: none) and its epoch.
        """
        self._driver.start(committed, loaded_snapshot, leader_changed)

    # -- requests and appends

    def ask(self, request: Message, version: int, listener: str) -> Pending:
        """Give the replica a request that came through `listener`; it completes the `Pending`."""
        pending = RaftPending(self)
        inbound = Inbound(pending, request, version, listener)
        self._driver.submit(lambda now_ms: self.replica.asked(inbound, now_ms))
        return pending

    def prepare(self, records: Sequence[Message], metadata_version: int, is_atomic: bool = True) -> PreparedChange:
        """Encode one change for the current log end; raises NOT_CONTROLLER unless this node leads."""
        if not self.is_leader or self.failure.done():
            raise KafkaError(
                ErrorCode.NOT_CONTROLLER, f"node {self.node_id} does not lead the metadata quorum: ask the controller that does"
            )
        return self.log.prepare(records, metadata_version, self.epoch, is_atomic)

    def append(self, change: PreparedChange) -> None:
        """Append the change that was just prepared; it is committed once a majority of voters has synced it."""
        self.log.append(change)
        for batch in change.batches:
            self._driver.taken(batch)
        self._driver.submit(self.replica.log_changed)

    # -- kraft.version

    def refuse_upgrade(self) -> str | None:
        """Why kraft.version cannot be raised now; None if it can."""
        return "this node does not lead the quorum" if not self.is_leader else refuse_upgrade(self.replica)

    def upgrade(self) -> None:
        """Raise kraft.version, unless `refuse_upgrade` has a reason; it is committed as any other record."""
        self._driver.taken(self.log.append_controls(upgrade_records(self.replica), self.epoch))
        self._driver.submit(self.replica.log_changed)

    # -- failing and closing

    def fail(self, failure: BaseException) -> None:
        """Commit nothing from now on; the node must stop."""
        self._driver.fail(failure)

    async def close(self) -> None:
        """Resign and close the log; appended records are flushed, but no listener is called any more."""
        if isinstance(self.replica.role, Leader) and not self.failure.done():
            self.peers.down.clear()
            self._driver.submit(self.replica.stop)
            await self._leave()
        self.abort()
        if not self.failure.done():
            await self.log.close()

    async def _leave(self) -> None:
        """Wait until the other voters know that this leader resigns, or for a short time. Some may be down."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + _RESIGN_S_MAX
        while isinstance(role := self.replica.role, Resigned) and not self.failure.done():
            if loop.time() > deadline_s or all(voter.id in self.peers.down for voter in role.unacknowledged):
                return
            await asyncio.sleep(0.01)

    def abort(self) -> None:
        """Stop at once, as a killed process would: nothing is sent or written any more."""
        self._driver.abort()


_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class NotAQuorumOfOne(OttlaError):
    """This node is not the only voter, so it cannot lead at once."""


def check_alone(voters: VoterSet, local: ReplicaKey, folder: str) -> None:
    """Raise `NotAQuorumOfOne`, with a remedy, unless `local` is the only voter."""
    if voters.is_only_voter(local):
        return
    if not len(voters):
        raise NotAQuorumOfOne(
            f"{folder} knows no voters: format the directory with --standalone, or set controller.quorum.voters"
        )
    if len(voters) == 1:
        known = next(iter(voters)).key
        raise NotAQuorumOfOne(
            f"the only voter of this quorum is node {known}, and this is node {local}: correct node.id, or "
            "start with the directory that the quorum was formatted with"
        )
    raise NotAQuorumOfOne(
        f"this quorum has {len(voters)} voters ({', '.join(map(str, voters.ids))}), and node {local} cannot lead it "
        "alone: start the other voters too"
    )


def _own_addresses(config: BrokerConfig) -> set[tuple[str, int]]:
    """Where this node's own controller can be: a replica does not fetch from itself."""
    names = config.controller_listener_names
    mine = [*(each for each in config.listeners if each.name in names), *config.advertised_controller_listeners]
    return {(host, each.port) for each in mine for host in (each.host, *_LOOPBACK)} if config.is_controller else set()


def raft_settings(config: BrokerConfig, cluster_id: str | None) -> RaftSettings:
    """The replica's settings, from `controller.quorum.*`."""
    voters = config.controller_quorum_voters
    servers = config.controller_quorum_bootstrap_servers or tuple((host, port) for _, host, port in voters)
    mine = {(host, port) for voter_id, host, port in voters if voter_id == config.node_id} | _own_addresses(config)
    return RaftSettings(
        cluster_id,
        config.controller_listener_names[0],
        {},
        tuple(server for server in servers if server not in mine),
        can_be_voter=config.is_controller,
        election_timeout_ms=config.controller_quorum_election_timeout_ms,
        election_backoff_max_ms=config.controller_quorum_election_backoff_max_ms,
        fetch_timeout_ms=config.controller_quorum_fetch_timeout_ms,
        request_timeout_ms=config.controller_quorum_request_timeout_ms,
        retry_backoff_ms=config.controller_quorum_retry_backoff_ms,
        fetch_max_bytes=config.controller_quorum_fetch_max_bytes,
        fetch_snapshot_max_bytes=config.controller_quorum_fetch_snapshot_max_bytes,
        auto_join=config.controller_quorum_auto_join_enable,
    )
