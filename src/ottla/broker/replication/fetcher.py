"""Replicates partitions from one leader: sends the requests of a `FetchMachine` on a link of its own, and writes their records.

Appends are plain calls on the loop. Truncations are awaited in tasks; meanwhile answers about the partition are ignored.
Before each change the partition is asked whether it still follows this leader in this epoch. While a log is truncated, the
metadata is not applied to its partition (`Partitions.truncations`), so that it cannot begin to lead in the middle.

A fetch is this replica's acknowledgement of everything below its offset. Where flush.messages wants records on disk, they are
flushed before the next request: the leader's session holds the offset before them, and any request of the session would ask
for them again. A partition whose leader changes during its flush is fetched from the next leader after it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, cast

from ottla.broker.replication.fetch_machine import Action, Append, FetchMachine, Key, Limits, Place, Reset, Throttle, Truncate
from ottla.broker.replication.quota import UNLIMITED, portion_bytes
from ottla.env.backoff import exponential
from ottla.errors import BrokenInvariant, KafkaError, OttlaError
from ottla.errors.codes import ErrorCode, error_name
from ottla.link import LinkError, LinkOptions
from ottla.log.append import UnexpectedAppendOffset
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

if TYPE_CHECKING:
    from ottla.broker.metadata_cache import MetadataCache
    from ottla.broker.node_links import NodeLinks
    from ottla.broker.partitions.partition import Partition
    from ottla.broker.partitions.partitions import Partitions
    from ottla.broker.replication.quota import ReplicationQuota
    from ottla.broker.settings import BrokerSettings
    from ottla.ids import TopicPartition, Uuid
    from ottla.link import Link

logger = logging.getLogger("ottla.replication")

_LATEST: Final = -1
_EARLIEST: Final = -2
_BYTES_PER_TURN: Final = 1 << 20
"""How many bytes are appended before other tasks run."""
_CONNECT_MS: Final = 5000
_RECONNECT_FIRST_S: Final = 0.05


class ReplicaFetcher:
    """The fetcher of this broker for leader `leader_id`. `broker_epoch` returns the epoch of its newest registration."""

    def __init__(
        self,
        leader_id: int,
        partitions: Partitions,
        metadata: MetadataCache,
        settings: BrokerSettings,
        to_brokers: NodeLinks,
        broker_epoch: Callable[[], int],
        quota: ReplicationQuota,
    ) -> None:
        self.leader_id = leader_id
        self._quota = quota
        self.machine = FetchMachine(partitions.node_id)
        self._partitions = partitions
        self._metadata = metadata
        self._settings = settings
        self._to_brokers = to_brokers
        self._broker_epoch = broker_epoch
        self._loop = asyncio.get_running_loop()
        self._link: Link | None = None
        self._incarnation: Uuid | None = None
        """The leader's process that the link leads to."""
        self._failures = 0
        self._wake = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._running = self._loop.create_task(self._run())

    # -- what to follow

    def follow(self, partition: Partition) -> None:
        """Replicate a partition from this leader, in its current leader epoch."""
        key = (partition.topic_id, partition.index)
        must_flush = partition.log.needs_flush
        if self.machine.follow(key, partition.name, partition.leader_epoch, place_of(partition), not must_flush) and must_flush:
            self._spawn(self._flush_first(key, partition, partition.leader_epoch))
        self._wake.set()

    def unfollow(self, key: Key) -> None:
        self.machine.unfollow(key)

    def leader_changed(self) -> None:
        """The leader's registration has changed. A process that lost its power answers no more, and no packet says so."""
        broker = self._metadata.image.cluster.brokers.get(self.leader_id)
        if self._link is not None and broker is not None and broker.incarnation_id != self._incarnation:
            self._link.close()  # a request under way fails now, not after replica.socket.timeout.ms

    async def stop(self) -> None:
        """Send no more requests, and wait for the tasks that change logs."""
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)
        if self._link is not None:
            self._link.close()
        if self._tasks:
            await asyncio.wait(self._tasks)

    # -- fetching

    async def _run(self) -> None:
        try:
            while True:
                self._wake.clear()
                config = self._settings.current
                limits = Limits(
                    config.replica_fetch_wait_max_ms,
                    config.replica_fetch_min_bytes,
                    config.replica_fetch_response_max_bytes,
                    config.replica_fetch_max_bytes,
                    config.replica_fetch_backoff_ms / 1000,
                )
                now_s = self._loop.time()
                self._throttle(config.follower_replication_throttled_rate, now_s)
                request = self.machine.request(self._broker_epoch(), limits, now_s)
                if request is None:
                    await self._wait(self.machine.next_due_s)
                    continue
                try:
                    link = await self._connected()
                    response = await link.request(request, config.replica_socket_timeout_ms)
                except LinkError as failure:
                    await self._failed(failure, limits.backoff_max_s)
                    continue
                self._failures = 0
                if response.error_code and not self.machine.is_session_error(response.error_code):
                    logger.warning("node %d refuses a fetch: %s", self.leader_id, error_name(response.error_code))
                    await asyncio.sleep(limits.backoff_max_s)
                await self._carry_out(self.machine.answered(response, self._loop.time(), limits.backoff_max_s), limits)
        except Exception as failure:
            logger.exception("the replica fetcher for node %d has failed", self.leader_id)
            self._partitions.broken(failure)

    def _throttle(self, bytes_per_s: int, now_s: float) -> None:
        """Fetch no more of throttled partitions than the quota leaves."""
        if bytes_per_s >= UNLIMITED:
            self.machine.end_throttle()
        else:
            quota = self._quota
            left = Throttle(
                quota.allowance(bytes_per_s, now_s),
                portion_bytes(bytes_per_s),
                self._is_throttled,
                now_s + quota.wait_s(bytes_per_s, now_s),
            )
            self.machine.throttle(left, now_s)

    def _is_throttled(self, name: TopicPartition) -> bool:
        partition = self._partitions.find(*name)
        if partition is None:
            return False
        setting = partition.log.config.follower_replication_throttled_replicas
        return self._quota.lists(*name, self._partitions.node_id, setting)

    async def _wait(self, due_s: float | None) -> None:
        """Wait until `due_s`, or until there is more to fetch."""
        try:
            async with asyncio.timeout_at(due_s):
                await self._wake.wait()
        except TimeoutError:
            pass

    async def _connected(self) -> Link:
        link = self._link
        broker = self._metadata.image.cluster.brokers.get(self.leader_id)
        endpoint = None if broker is None else broker.endpoints.get(self._settings.current.inter_broker_listener_name)
        if link is not None:
            if endpoint is not None and (link.host, link.port) == (endpoint.host, endpoint.port) and not link.is_over:
                return link
            link.close()
            self.machine.failed()  # the session belongs to a process that may be gone
        if broker is None or endpoint is None:
            raise LinkError(f"node {self.leader_id}", f"node {self.leader_id} is not registered")
        options = LinkOptions(
            client_id=f"broker-{self._partitions.node_id}-replica-fetcher", connect_timeout_ms=_CONNECT_MS, in_flight_max=1
        )
        self._incarnation = broker.incarnation_id
        self._link = await self._to_brokers.connect(endpoint.host, endpoint.port, options)
        return self._link

    async def _failed(self, failure: LinkError, backoff_max_s: float) -> None:
        self.machine.failed()
        if self._failures == 0:
            logger.info("cannot fetch from node %d, trying again: %s", self.leader_id, failure)
        pause_s = exponential(_RECONNECT_FIRST_S, self._failures, backoff_max_s)
        self._failures += 1
        self._wake.clear()
        await self._wait(self._loop.time() + pause_s)  # a new partition to follow ends the pause: its leader is up

    # -- carrying out

    async def _carry_out(self, actions: list[Action], limits: Limits) -> None:
        size_bytes = 0
        flushes: list[asyncio.Task[None]] = []
        for action in actions:
            if isinstance(action, Append):
                flush = self._append(action, limits)
                if flush is not None:
                    flushes.append(self._spawn(flush))
                size_bytes += len(action.data.records or b"")
                if size_bytes >= _BYTES_PER_TURN:
                    size_bytes = 0
                    await asyncio.sleep(0)
            else:
                self._spawn(self._reshape(action, limits))
        if flushes:
            await asyncio.wait(flushes)

    def _append(self, action: Append, limits: Limits) -> Coroutine[Any, Any, None] | None:
        """Append records; returns the flush that they need."""
        key, _, leader_epoch, data = action
        partition: Partition | None = None
        before = 0
        try:
            partition = self._following(action)
            before = partition.log.log_end_offset
            flush_needed = False
            if data.records:
                info = partition.append_as_follower(cast("memoryview", data.records), leader_epoch)
                flush_needed = info.flush_needed
                if partition.log.config.follower_replication_throttled_replicas and self._is_throttled(action.name):
                    self._quota.record(len(data.records), self._loop.time())
            partition.follow_offsets(data.high_watermark, data.log_start_offset)
        except UnexpectedAppendOffset as unexpected:
            self._spawn(self._reshape(action, limits, unexpected))
            return None
        except KafkaError as refused:
            if partition is not None and partition.log.log_end_offset > before:
                # The first batches are appended: go on behind them, once they are where flush.messages may want them.
                return self._flush(action, partition, limits)
            self._refused(action, refused, limits)
            return None
        if data.records and partition.log.log_end_offset == before:
            self.machine.refused(key, leader_epoch, self._loop.time(), limits.backoff_max_s)
        elif flush_needed:
            return self._flush(action, partition, limits)
        else:
            self.machine.done(key, leader_epoch, place_of(partition))
        return None

    async def _flush(self, action: Append, partition: Partition, limits: Limits) -> None:
        try:
            await partition.log.flush()
        except BrokenInvariant as failure:
            self._partitions.broken(failure)
        except OttlaError as failure:
            self._refused(action, partition.refused_by(failure), limits)
        else:
            self.machine.done(action.key, action.leader_epoch, place_of(partition))

    async def _flush_first(self, key: Key, partition: Partition, leader_epoch: int) -> None:
        """Flush what was appended under another leader, or as leader; then fetch. If the disk fails, nothing is fetched."""
        try:
            await partition.log.flush()
        except BrokenInvariant as failure:
            self._partitions.broken(failure)
        except OttlaError as failure:
            logger.warning("%s is not replicated: %s", partition.name, partition.refused_by(failure))
        else:
            self.machine.done(key, leader_epoch, place_of(partition))
            self._wake.set()

    async def _reshape(self, action: Action, limits: Limits, unexpected: UnexpectedAppendOffset | None = None) -> None:
        """Bring this log back to a place that it shares with the leader's; `unexpected` is why records were not appended."""
        try:
            if isinstance(action, Truncate):
                await self._truncate(action)
            elif isinstance(action, Append):
                await self._begin_earlier(action, cast("UnexpectedAppendOffset", unexpected))
            else:
                await self._reset(action)
            self.machine.done(action.key, action.leader_epoch, place_of(self._following(action)))
            self._wake.set()
        except BrokenInvariant as failure:
            self._partitions.broken(failure)
        except LinkError as failure:
            logger.info("%s: could not ask node %d for its offsets: %s", action.name, self.leader_id, failure)
            self.machine.refused(action.key, action.leader_epoch, self._loop.time(), limits.backoff_max_s)
            self._wake.set()
        except OttlaError as failure:
            partition = self._partitions.find(*action.name)
            refused = failure if isinstance(failure, KafkaError) or partition is None else partition.refused_by(failure)
            self._refused(action, refused, limits)
            self._wake.set()

    async def _truncate(self, action: Truncate) -> None:
        """The leader's epoch `action.epoch` ends at `action.end_offset`: keep what this log has in common with it."""
        log = self._following(action).log
        mine = log.end_offset_for_epoch(action.epoch)
        offset = action.end_offset if mine is None else min(action.end_offset, mine[1])
        await self._alone(action, lambda: self._partitions.directories.truncate(action.name, offset))

    async def _reset(self, action: Reset) -> None:
        """This log's end is not in the leader's log: end where the leader ends, or begin where it begins."""
        leader_end = await self._leader_offset(action, _LATEST)
        leader_start = await self._leader_offset(action, _EARLIEST)
        log = self._following(action).log
        if leader_end < log.log_end_offset:
            logger.warning("%s: truncated from %d to the leader's end %d", action.name, log.log_end_offset, leader_end)
            await self._alone(action, lambda: self._partitions.directories.truncate(action.name, leader_end))
        elif leader_start >= log.log_end_offset:
            await self._alone(action, lambda: self._partitions.directories.truncate_fully(action.name, leader_start))

    async def _begin_earlier(self, action: Append, unexpected: UnexpectedAppendOffset) -> None:
        """Append a first batch that the leader's log start offset cuts in two: this log has to begin where the batch does.

        The records are appended at once: fetched again from the lower offset, they would be out of the leader's range.
        """
        log = self._following(action).log
        if not log.log_start_offset == log.log_end_offset <= unexpected.last_offset:
            raise unexpected
        await self._alone(action, lambda: self._partitions.directories.truncate_fully(action.name, unexpected.first_offset))
        partition = self._following(action)
        info = partition.append_as_follower(cast("memoryview", action.data.records), action.leader_epoch)
        partition.follow_offsets(action.data.high_watermark, action.data.log_start_offset)
        if info.flush_needed:
            await partition.log.flush()

    async def _alone(self, action: Action, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Change the log, if its partition still follows; nothing is made of the metadata meanwhile."""
        truncations = self._partitions.truncations
        while (other := truncations.get(action.name)) is not None:  # of an earlier epoch
            await asyncio.wait([other])
        self._following(action)
        done = truncations[action.name] = self._loop.create_future()
        try:
            await work()
        finally:
            del truncations[action.name]
            done.set_result(None)

    async def _leader_offset(self, action: Action, timestamp: int) -> int:
        request = ListOffsetsRequest(
            replica_id=self._partitions.node_id,
            topics=[
                ListOffsetsTopic(
                    name=action.name.topic,
                    partitions=[
                        ListOffsetsPartition(
                            partition_index=action.name.partition,
                            current_leader_epoch=action.leader_epoch,
                            timestamp=timestamp,
                        )
                    ],
                )
            ],
        )
        if self._link is None:
            raise LinkError(f"node {self.leader_id}", f"node {self.leader_id} is not connected")
        response = await self._link.request(request, self._settings.current.replica_socket_timeout_ms)
        answer = response.topics[0].partitions[0]
        if answer.error_code:
            raise KafkaError(answer.error_code, f"node {self.leader_id} answers {error_name(answer.error_code)}")
        return int(answer.offset)

    # -- helpers

    def _following(self, action: Action) -> Partition:
        """The partition, if it still follows in the epoch of `action`; raises a `KafkaError` if it does not."""
        partition = self._partitions.find(*action.name)
        if partition is None or partition.topic_id != action.key[0]:
            self.machine.unfollow(action.key)
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{action.name} is not on this node any more")
        partition.check_following(action.leader_epoch)
        return partition

    def _refused(self, action: Action, refused: OttlaError, limits: Limits) -> None:
        # A fenced epoch is ordinary: the partition has another leader, and its fetcher learns of it with the metadata.
        is_ordinary = isinstance(refused, KafkaError) and refused.code == ErrorCode.FENCED_LEADER_EPOCH
        level = logging.DEBUG if is_ordinary else logging.WARNING
        logger.log(level, "%s could not be replicated from node %d: %s", action.name, self.leader_id, refused)
        self.machine.refused(action.key, action.leader_epoch, self._loop.time(), limits.backoff_max_s)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (failure := task.exception()) is not None:
            logger.error("a replica of node %d could not be brought back in line", self.leader_id, exc_info=failure)
            self._partitions.broken(failure)


def place_of(partition: Partition) -> Place:
    """Where a follower's log ends."""
    log = partition.log
    epoch = log.latest_epoch
    return Place(log.log_end_offset, -1 if epoch is None else epoch, log.log_start_offset)
