"""Writes end markers to partitions that this node leads, for WriteTxnMarkers and for this node's own coordinator.

A marker in a partition of __consumer_offsets also ends the transaction in the group coordinator's shard. Markers that are not
below the high watermark at once are waited for, at most request.timeout.ms. One event loop; plain calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from ottla.broker.partitions.partition import ALL_IN_SYNC
from ottla.coordinator.contract import Producer
from ottla.errors import KafkaError, OttlaError
from ottla.errors.codes import ErrorCode
from ottla.ids import OFFSETS_TOPIC, TopicPartition
from ottla.log.producers.append_checks import AppendOrigin
from ottla.records.control import build_end_marker

if TYPE_CHECKING:
    from ottla.broker.partitions.partition import Partition
    from ottla.broker.partitions.partitions import Partitions
    from ottla.broker.runtime.coordinators.groups import GroupRuntime
    from ottla.broker.settings import BrokerSettings
    from ottla.env import Clock

Outcome = dict[TopicPartition, int]
"""Partition → error code; NONE if the marker is below the high watermark."""


class Marker(NamedTuple):
    """The end of a producer's transaction, as it is written to partitions."""

    producer: Producer
    is_commit: bool
    coordinator_epoch: int
    transaction_version: int


class MarkerWriter:
    """Writes markers to the partitions of this node. `groups` returns its group coordinator."""

    def __init__(
        self, partitions: Partitions, settings: BrokerSettings, clock: Clock, groups: Callable[[], GroupRuntime]
    ) -> None:
        self._partitions = partitions
        self._settings = settings
        self._clock = clock
        self._groups = groups

    def write(self, marker: Marker, names: Iterable[TopicPartition], done: Callable[[Outcome], None]) -> None:
        """Write `marker` to the partitions; `done` is called, now or later, with the error code of each."""
        outcome: Outcome = {}
        unsafe: dict[Partition, int] = {}
        now_ms = self._clock.now_ms()
        # One batch for all partitions: base offset and leader epoch are not covered by its CRC.
        batch = build_end_marker(
            is_commit=marker.is_commit,
            producer_id=marker.producer.id,
            producer_epoch=marker.producer.epoch,
            coordinator_epoch=marker.coordinator_epoch,
            timestamp_ms=now_ms,
        )
        for name in names:
            try:
                partition, end_offset = self._append(marker, name, batch, now_ms)
            except KafkaError as refused:
                outcome[name] = refused.code
                continue
            outcome[name] = ErrorCode.NONE
            if partition.log.high_watermark < end_offset:
                unsafe[partition] = end_offset
        if unsafe:
            MarkerWait(outcome, unsafe, self._settings.current.request_timeout_ms, done)
        else:
            done(outcome)

    def _append(self, marker: Marker, name: TopicPartition, batch: bytearray, now_ms: int) -> tuple[Partition, int]:
        """Append the marker; returns the partition and the offset that its high watermark has to reach."""
        partition = self._partitions.find(*name)
        if partition is None:
            # Also for partitions on other nodes: the coordinator then looks for the leader again.
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{name} is not on this node")
        is_offsets = name.topic == OFFSETS_TOPIC
        if is_offsets:
            self._make_way(name.partition)
        (producer_id, epoch), is_commit, coordinator_epoch, transaction_version = marker
        offset = -1
        if is_commit:
            try:
                offset = partition.append_marker(batch, producer_id, epoch, coordinator_epoch, transaction_version, now_ms)
            except OttlaError as failure:
                raise partition.refused_by(failure) from None
        if offset < 0:
            info = partition.append(
                bytearray(batch), ALL_IN_SYNC, origin=AppendOrigin.COORDINATOR, transaction_version=transaction_version
            )
            offset = info.last_offset
        if is_offsets:
            self._groups().ended(name.partition, marker.producer, is_commit)
        return partition, offset + 1

    def _make_way(self, index: int) -> None:
        """Have the group coordinator append its decided records first; its shard must be able to replay the marker."""
        try:
            self._groups().shard_at(index).write_out()
            self._groups().shard_at(index)  # a failed append may have made it give up
        except KafkaError as refused:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, str(refused)) from refused


class MarkerWait:
    """Waits until appended markers are below the high watermark."""

    def __init__(
        self, outcome: Outcome, unsafe: dict[Partition, int], timeout_ms: int, done: Callable[[Outcome], None]
    ) -> None:
        self._outcome = outcome
        self._unsafe = unsafe
        self._done = done
        self._timer = asyncio.get_running_loop().call_later(timeout_ms / 1000, self._time_is_over)
        for partition in unsafe:
            partition.ack_waits[self] = None

    def settle(self, partition: Partition) -> bool:
        """Called by the partition: True if the wait for it is over, with success or failure."""
        end_offset = self._unsafe.get(partition)
        if end_offset is None:
            return True
        if not partition.is_leading:
            self._outcome[partition.name] = partition.refusal().code
        elif partition.log.high_watermark < end_offset:
            return False
        del self._unsafe[partition]
        if not self._unsafe:
            self._timer.cancel()
            self._done(self._outcome)
        return True

    def _time_is_over(self) -> None:
        for partition in self._unsafe:
            partition.ack_waits.pop(self, None)
            self._outcome[partition.name] = ErrorCode.REQUEST_TIMED_OUT
        self._unsafe.clear()
        self._done(self._outcome)
