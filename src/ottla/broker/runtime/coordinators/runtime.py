"""All shards of one coordinator on this node: loads and unloads them with leadership, and finds the shard of a key.

Follows the metadata: the leader of partition N of the internal topic is the coordinator of every key that hashes to N. While a
shard is loading, its keys are refused with COORDINATOR_LOAD_IN_PROGRESS, and clients ask again. Once the partition is led
elsewhere they are refused with NOT_COORDINATOR, even if the load still runs: clients must look for the new coordinator.

One event loop. Loading is a task per shard; everything else is plain calls.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ottla.broker.requests.context import future_of
from ottla.broker.runtime.coordinators.hosted_shard import HostedShard, PendingReply, ShardOwner
from ottla.broker.runtime.coordinators.load import READ_BYTES, load_shard
from ottla.coordinator.contract import Effects, Instant, Reply, Shard
from ottla.coordinator.placement import partition_for
from ottla.env.backoff import exponential
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.errors.texts import counted
from ottla.records.compression import Codec
from ottla.wire.log_records import InternalLog

if TYPE_CHECKING:
    from ottla.broker.metadata_cache import MetadataCache
    from ottla.broker.partitions.partition import Partition
    from ottla.broker.partitions.partitions import Partitions
    from ottla.env import Clock
    from ottla.log.producers.append_checks import VerificationState

logger = logging.getLogger("ottla.coordinator")

S = TypeVar("S", bound=Shard)
R = TypeVar("R")

RELOAD_DELAY_S = 1.0
"""Delay before a shard that was given up is loaded again: the cause may persist."""
RELOAD_DELAY_S_MAX = 300.0
"""For a log that cannot be read or replayed the delay doubles each time, up to this."""


class CoordinatorRuntime(ShardOwner, Generic[S]):
    """The shards of one internal topic. `make(partition)` returns a new, empty shard."""

    def __init__(
        self,
        topic: str,
        log_kind: InternalLog,
        partitions: Partitions,
        metadata: MetadataCache,
        clock: Clock,
        commit_timeout_ms: int,
        make: Callable[[Partition], S],
    ) -> None:
        self.topic = topic
        self._log_kind = log_kind
        self._partitions = partitions
        self._metadata = metadata
        self._clock = clock
        self._commit_timeout_ms = commit_timeout_ms
        self._make = make
        self._loading: dict[int, asyncio.Task[None]] = {}
        self._reading = asyncio.Lock()
        """Shards are loaded one after the other: many at once would take all of the loop's time."""
        self._reloads: dict[int, asyncio.TimerHandle] = {}
        self._failed_loads: dict[int, int] = {}
        self._is_stopped = False
        self.active: dict[int, HostedShard[S]] = {}
        """The shards that serve, by partition."""
        self.codec = Codec.NONE
        """The compression of the shards' batches."""
        self.read_bytes = READ_BYTES
        """How much of a log is read at a time when a shard is loaded."""

    # -- requests

    def shard_for(self, key: str) -> HostedShard[S]:
        """The shard that is responsible for `key`. Raises a `KafkaError` if it is not on this node or is still loading."""
        topic = self._metadata.topic(self.topic)
        if topic is None:
            raise KafkaError(
                ErrorCode.NOT_COORDINATOR, f"the topic {self.topic} does not exist yet: send FindCoordinator first"
            )
        return self.shard_at(partition_for(key, len(topic.partitions)))

    def shard_at(self, index: int) -> HostedShard[S]:
        hosted = self.active.get(index)
        if hosted is not None and hosted.partition.is_leading and not hosted.is_over:
            return hosted
        if not self._is_led(index):
            raise KafkaError(
                ErrorCode.NOT_COORDINATOR, f"this node does not lead {self.topic}-{index}: find the coordinator and ask there"
            )
        if self._is_stopped:
            raise KafkaError(
                ErrorCode.NOT_COORDINATOR,
                f"this node is stopping, with the coordinator for {self.topic}-{index}: find the new one",
            )
        # Also before `follow` knows of the partition: it is about to load it.
        raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"the coordinator still reads {self.topic}-{index}: ask again")

    def ask(
        self,
        key: str,
        decide: Callable[[S, Reply, Instant], Effects],
        verified_by: VerificationState | None = None,
        may_write: bool = True,
    ) -> PendingReply:
        """Have a request about `key` decided; the reply completes when the decision's records are committed.

        One that may write is refused while too few replicas are in sync.
        """
        return self.shard_for(key).ask(decide, verified_by, may_write)

    async def call(
        self, key: str, decide: Callable[[S, Reply, Instant], Effects], verified_by: VerificationState | None = None
    ) -> Any:
        """Like `ask`, but awaits the response; raises its `KafkaError`."""
        return await future_of(self.ask(key, decide, verified_by))

    async def look(self, key: str, at: Callable[[S, Instant], R]) -> R:
        """The result of `at` on the shard of `key`, returned when everything it may have seen is committed."""
        return await self.look_into(self.shard_for(key), at)

    async def look_into(self, hosted: HostedShard[S], at: Callable[[S, Instant], R]) -> R:
        result: R = await future_of(
            hosted.ask(lambda shard, reply, now: Effects.answer(reply, at(shard, now)), may_write=False)
        )
        return result

    def __iter__(self) -> Iterator[HostedShard[S]]:
        """The shards that serve, in the order of their partitions."""
        return (self.active[index] for index in sorted(self.active))

    @property
    def is_loading(self) -> bool:
        """Whether shards of partitions that are led here do not serve yet."""
        return any(map(self._is_led, (*self._loading, *self._reloads)))

    # -- following the metadata

    def follow(self) -> None:
        """The partitions have been updated: load the shards that are led here now, give up those that are not."""
        if self._is_stopped:
            return
        led = {
            index: partition
            for index, partition in self._partitions.by_name.get(self.topic, {}).items()
            if partition.is_leading
        }
        for index, hosted in list(self.active.items()):
            if led.get(index) is not hosted.partition or hosted.partition.leader_epoch != hosted.epoch:
                hosted.give_up()
        for index in [index for index in self._reloads if index not in led]:
            self._reloads.pop(index).cancel()  # if it is led here again, it is loaded at once
        for index in sorted(led):
            if index not in self.active and index not in self._loading and index not in self._reloads:
                self._load(led[index])

    def _is_led(self, index: int) -> bool:
        """Whether this node leads the partition now. A load may still run, or wait, for one that it has lost."""
        partition = self._partitions.find(self.topic, index)
        return partition is not None and partition.is_leading

    def _load(self, partition: Partition) -> None:
        index = partition.index
        if partition.log.log_start_offset == partition.log.log_end_offset:
            self._begin(partition, self._make(partition))  # nothing to read: the request that created it comes next
            return
        self._loading[index] = asyncio.get_running_loop().create_task(self._read(partition))

    async def _read(self, partition: Partition) -> None:
        index, epoch = partition.index, partition.leader_epoch
        started_s = self._clock.monotonic_s()
        shard = self._make(partition)
        try:
            async with self._reading:
                count = await load_shard(shard, self._log_kind, partition, self._partitions.cold_reads, self.read_bytes)
            self.bring_up_to_date(shard)
        except (KafkaError, OSError) as failure:
            logger.error("%s could not be read, so its coordinator is not available: %s", partition.name, failure)
            self._load_failed(index)
            return
        except Exception:  # a bug of ours in one shard: the others go on
            logger.exception("%s could not be replayed, so its coordinator is not available", partition.name)
            self._load_failed(index)
            return
        finally:
            self._loading.pop(index, None)
        if partition.leader_epoch != epoch or not partition.is_leading:
            self.follow()
            return
        logger.info(
            "%s: %s read in %d ms", partition.name, counted(count, "record"), (self._clock.monotonic_s() - started_s) * 1000
        )
        self._failed_loads.pop(index, None)
        self._begin(partition, shard)

    def _begin(self, partition: Partition, shard: S) -> None:
        hosted = self.active[partition.index] = HostedShard(self, shard, partition, self._clock, self._commit_timeout_ms)
        hosted.codec = self.codec
        hosted.begin()

    def bring_up_to_date(self, shard: S) -> None:
        """Apply to a loaded shard what changed in the metadata while it was loading. Overridden by hosts that need it."""

    # -- calls from shards

    def carry_out(self, shard: HostedShard[Any], orders: list[Any]) -> None:
        """Carry out the orders of decisions, once their records are committed: for hosts whose shards give orders."""
        raise NotImplementedError(f"the coordinator of {self.topic} carries out no orders: {orders}")

    def given_up(self, shard: HostedShard[Any]) -> None:
        index = shard.partition.index
        if self.active.get(index) is shard:
            del self.active[index]
        if not self._is_stopped and shard.partition.is_leading:
            self._reload_later(index)

    def _load_failed(self, index: int) -> None:
        if not self._is_led(index):
            return  # `follow` loads it once it is led here again
        failures = self._failed_loads[index] = self._failed_loads.get(index, 0) + 1
        self._reload_later(index, exponential(RELOAD_DELAY_S, failures - 1, RELOAD_DELAY_S_MAX))

    def _reload_later(self, index: int, delay_s: float = RELOAD_DELAY_S) -> None:
        if index not in self._reloads and not self._is_stopped:
            self._reloads[index] = asyncio.get_running_loop().call_later(delay_s, self._reload, index)

    def _reload(self, index: int) -> None:
        self._reloads.pop(index, None)
        self.follow()

    # -- stopping

    async def stop(self) -> None:
        """Give up all shards; parked requests get an error."""
        self._is_stopped = True
        for timer in self._reloads.values():
            timer.cancel()
        self._reloads.clear()
        for task in list(self._loading.values()):
            task.cancel()
        await asyncio.gather(*self._loading.values(), return_exceptions=True)
        for hosted in list(self.active.values()):
            hosted.give_up()
