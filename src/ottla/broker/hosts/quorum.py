"""The Raft quorum on this node: opens the metadata log, elects a leader, commits what is appended.

Owns the metadata log, the voters from its records, and the quorum-state file. The pure machine (`ottla.raft`) decides, and this
file acts: it writes the election to disk before it takes effect, appends the leader's first records, and raises the high
watermark when the log is synced. Only a quorum of one voter is supported.

Loop rule: appends are plain calls. One task syncs; what is appended during a sync shares the next one. Then the batches are
committed, and the listener (`quorum_listener.py`) is called with them in the order of the log.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ottla.broker.hosts.metadata_log import MetadataBatch, MetadataLog, PreparedChange, log_config
from ottla.errors import KafkaError, LogDirectoryFailed, OttlaError
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid
from ottla.raft import quorum as raft
from ottla.raft.quorum_state import read_quorum_state, write_quorum_state
from ottla.raft.voter_history import VoterHistory
from ottla.raft.voters import Endpoints, ReplicaKey, VoterSet, static_voters
from ottla.wire.base import Message

if TYPE_CHECKING:
    from ottla.broker.hosts.quorum_listener import QuorumListener
    from ottla.config.broker import BrokerConfig
    from ottla.env import World

logger = logging.getLogger("ottla.quorum")


class NotAQuorumOfOne(OttlaError):
    """This node is not the only voter; quorums of several voters are not supported yet."""


class ReplicaFacts(NamedTuple):
    """The progress of one replica of the metadata log."""

    replica_id: int
    directory_id: Uuid
    log_end_offset: int
    last_fetch_ms: int
    last_caught_up_ms: int


class QuorumFacts(NamedTuple):
    """What DescribeQuorum reports."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: Sequence[ReplicaFacts]
    observers: Sequence[ReplicaFacts]
    endpoints: Mapping[int, Endpoints]
    """Voter → listener name → host and port."""


class QuorumHost:
    """This node's replica of the metadata log. `open`, `load`, `elect`, `start`; then `prepare` and `append`."""

    def __init__(self, world: World, metadata_log: MetadataLog, local: ReplicaKey, history: VoterHistory) -> None:
        self._world = world
        self._history = history
        self._local = local
        self._uncommitted: deque[MetadataBatch] = deque()
        self._appended = asyncio.Event()
        self._committer: asyncio.Task[None] | None = None
        self.log = metadata_log
        self.quorum = raft.start(local, history.voters, None, metadata_log.last_epoch)
        self.failure: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        """Set, with the reason, when nothing can be committed any more: the node must stop."""

    @classmethod
    async def open(cls, world: World, config: BrokerConfig, directory_id: Uuid) -> QuorumHost:
        """Open the metadata log of a formatted directory, whose lock the caller holds.

        Raises `LogDirectoryFailed` if the disk fails, `CorruptFile` if a file is damaged.
        """
        metadata_log = await MetadataLog.open(world, config.log.metadata_log_dir, log_config(config))
        listener = config.controller_listener_names[0]
        history = VoterHistory(static_voters(config.controller_quorum_voters, listener))
        return cls(world, metadata_log, ReplicaKey(config.node_id, directory_id), history)

    # -- state

    @property
    def node_id(self) -> int:
        return self._local.id

    @property
    def epoch(self) -> int:
        return self.quorum.epoch

    @property
    def is_leader(self) -> bool:
        return self.quorum.is_leader

    @property
    def voters(self) -> VoterSet:
        return self._history.voters

    @property
    def kraft_version(self) -> int:
        return self._history.kraft_version

    @property
    def end_offset(self) -> int:
        return self.log.end_offset

    def voters_before(self, offset: int) -> tuple[int, VoterSet]:
        """kraft.version and voters, for a snapshot that covers everything below `offset`."""
        return self._history.kraft_version_before(offset), self._history.voters_before(offset)

    def facts(self) -> QuorumFacts:
        """The current state of the quorum."""
        now_ms = self._world.clock.now_ms()
        voters = [
            ReplicaFacts(voter.key.id, voter.key.directory_id, self.end_offset, now_ms, now_ms)
            for voter in self.voters
            if voter.key.matches(self._local)
        ]
        high_watermark = self.quorum.high_watermark
        return QuorumFacts(
            self.quorum.leader_id,
            self.epoch,
            -1 if high_watermark is None else high_watermark,
            voters,
            (),
            {voter.key.id: voter.endpoints for voter in self.voters},
        )

    # -- loading and election

    def load(self) -> Iterator[MetadataBatch]:
        """The batches of the newest snapshot and of the log after it, in order. Has to be read to its end before `elect`.

        Records that were not committed before are committed with the next leader's first record.
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
        for batch in self.log.batches(max(offset, self.log.partition_log.log_start_offset)):
            for at, control in enumerate(batch.controls, start=batch.base_offset):
                self._history.note(at, control)
            if batch.records:
                yield batch

    async def elect(self, endpoints: Endpoints | None = None) -> None:
        """Lead the quorum of one, in a new epoch; raises `NotAQuorumOfOne` if this node is not the only voter.

        `endpoints` are the controller's current listeners, if known; the voter record is updated if they have changed.
        """
        disk, folder = self._world.disk, self.log.folder
        self.quorum = raft.start(self._local, self.voters, read_quorum_state(disk, folder), self.log.last_epoch)
        self._check_alone()
        step = raft.election_due(self.quorum, self._history, self.end_offset, endpoints)
        writes = [self.log.write_topic_id()]
        if step.persist is not None:
            writes.append(write_quorum_state(disk, folder, step.persist, self.kraft_version, self.voters))
        try:
            await asyncio.gather(*writes)
        except OSError as error:
            raise self.log.partition_log.fail(error) from error
        self.quorum = step.quorum
        self._take(self.log.append_controls(step.controls, self.epoch))
        logger.info("leading the metadata quorum in epoch %d from offset %d on", self.epoch, self.end_offset)

    def _check_alone(self) -> None:
        if self.quorum.is_only_voter:
            return
        if not len(self.voters):
            raise NotAQuorumOfOne(
                f"{self.log.folder} knows no voters: format the directory with --standalone, or set controller.quorum.voters"
            )
        if len(self.voters) == 1:
            known = next(iter(self.voters)).key
            raise NotAQuorumOfOne(
                f"the only voter of this quorum is node {known}, and this is node {self._local}: correct node.id, or "
                "start with the directory that the quorum was formatted with"
            )
        raise NotAQuorumOfOne(
            f"this quorum has {len(self.voters)} voters ({', '.join(map(str, self.voters.ids))}), and Ottla leads a quorum of "
            "one only: set controller.quorum.voters to this node alone, or format with --standalone"
        )

    def start(self, listener: QuorumListener) -> None:
        """Start to commit what is appended, and to call `listener` with it."""
        listener.leader_changed(self.quorum.leader_id, self.epoch)
        self._committer = asyncio.get_running_loop().create_task(self._commit_forever(listener))

    # -- appending

    def prepare(self, records: Sequence[Message], metadata_version: int) -> PreparedChange:
        """Encode one change for the current log end; raises NOT_CONTROLLER unless this node leads."""
        if not self.is_leader or self.failure.done():
            raise KafkaError(
                ErrorCode.NOT_CONTROLLER, f"node {self.node_id} does not lead the metadata quorum: ask the controller that does"
            )
        return self.log.prepare(records, metadata_version, self.epoch)

    def append(self, change: PreparedChange) -> None:
        """Append the change that was just prepared; the next sync commits it."""
        self.log.append(change)
        for batch in change.batches:
            self._take(batch)

    def _take(self, batch: MetadataBatch) -> None:
        for at, control in enumerate(batch.controls, start=batch.base_offset):
            self._history.note(at, control)
        self._uncommitted.append(batch)
        self._appended.set()

    async def _commit_forever(self, listener: QuorumListener) -> None:
        try:
            while True:
                await self._appended.wait()
                self._appended.clear()
                await self._commit(listener)
        except Exception as failure:
            self.fail(failure)

    async def _commit(self, listener: QuorumListener) -> None:
        synced_offset = await self.log.sync()
        self.quorum = raft.synced(self.quorum, self._local, synced_offset)
        high_watermark = self.quorum.high_watermark
        if high_watermark is None:
            return
        self.log.committed(high_watermark)
        committed: list[MetadataBatch] = []
        while self._uncommitted and self._uncommitted[0].last_offset < high_watermark:
            committed.append(self._uncommitted.popleft())
        if committed:
            listener.committed(committed)

    def fail(self, failure: BaseException) -> None:
        """Commit nothing from now on; the node must stop."""
        if not self.failure.done():
            text = "the metadata log has failed" if isinstance(failure, LogDirectoryFailed) else "the controller has failed"
            logger.error("%s, so this node stops: %s", text, failure, exc_info=not isinstance(failure, OttlaError))
            self.failure.set_result(failure)

    # -- closing

    async def close(self) -> None:
        """Resign and close the log; appended records are flushed, but the listener is not called any more."""
        if self._committer is not None:
            self._committer.cancel()
            await asyncio.gather(self._committer, return_exceptions=True)
        self.quorum = raft.resign(self.quorum)
        if not self.failure.done():
            await self.log.close()
