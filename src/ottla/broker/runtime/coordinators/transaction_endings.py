"""Ends transactions that are decided: writes markers to all their partitions, then completes them in the coordinator.

Markers go to the leader of each partition: to this node directly, to others through `send_to`. A marker that fails is tried
again until it is written, as long as the coordinator's shard is active. Partitions that were deleted since need no marker.

A marker that is not answered yet is never sent again: the repeat could be written after the transaction has completed. Under
transaction version 1 the producer's next transaction has the same epoch, and the repeat would end it.

One event loop; plain calls and timers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ottla.broker.runtime.coordinators.transaction_markers import Marker, MarkerWriter, Outcome
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode, error_name
from ottla.ids import TopicPartition
from ottla.metadata.image.topics import NO_LEADER

if TYPE_CHECKING:
    from ottla.broker.metadata_cache import MetadataCache
    from ottla.broker.runtime.coordinators.hosted_shard import HostedShard
    from ottla.coordinator.transactions.shard import TransactionShard
    from ottla.coordinator.transactions.transaction import SendMarkers

logger = logging.getLogger("ottla.coordinator")

RETRY_BACKOFF_S = 0.1
FENCED_BACKOFF_S = 10.0
"""How long to wait if a partition has seen a marker of a newer coordinator epoch."""

SendToNode = Callable[[int, Marker, list[TopicPartition], Callable[[Outcome], None]], None]
"""Has another node write a marker to partitions that it leads; calls back once, with the error code of each."""


class Ending:
    """One transaction that is being ended."""

    __slots__ = ("hosted", "in_flight", "is_finished", "is_logged", "marker", "order", "pending")

    def __init__(self, hosted: HostedShard[TransactionShard], order: SendMarkers) -> None:
        self.hosted = hosted
        self.order = order
        self.marker = Marker(order.producer, order.is_commit, hosted.epoch, order.transaction_version)
        self.pending: dict[TopicPartition, None] = dict.fromkeys(order.partitions)
        """The partitions without a marker."""
        self.in_flight: set[TopicPartition] = set()
        """Those of `pending` whose marker was sent and is not answered; a failed connection counts as an answer."""
        self.is_finished = False
        """Whether the transaction was completed in the shard. By then the shard may have the producer's next one."""
        self.is_logged = False
        """Whether a failed marker was logged already; later failures are logged at DEBUG."""


class Endings:
    """The transactions of this node's coordinator that are being ended. `send_to` is for partitions of other nodes."""

    def __init__(self, node_id: int, metadata: MetadataCache, writer: MarkerWriter, send_to: SendToNode | None = None) -> None:
        self._node_id = node_id
        self._metadata = metadata
        self._writer = writer
        self._send_to = send_to
        self._retries: dict[Ending, asyncio.TimerHandle] = {}

    def begin(self, hosted: HostedShard[TransactionShard], order: SendMarkers) -> None:
        """Carry out a shard's order."""
        ending = Ending(hosted, order)
        self._send(ending)

    def retry_now(self) -> None:
        """The metadata has changed: try the failed markers again at once."""
        for ending, timer in list(self._retries.items()):
            timer.cancel()
            self._retry(ending)

    def stop(self) -> None:
        for timer in self._retries.values():
            timer.cancel()
        self._retries.clear()

    def _send(self, ending: Ending) -> None:
        """Send the marker to the partitions of `pending` that are not in flight; finish if there are none in `pending`."""
        refused: Outcome = {}
        by_node: dict[int, list[TopicPartition]] = {}
        for name in [name for name in ending.pending if name not in ending.in_flight]:
            state = self._metadata.partition(*name)
            if state is None:
                logger.info("%s was deleted: it needs no marker for the transaction of %r", name, ending.order.transactional_id)
                del ending.pending[name]
            elif state.leader == NO_LEADER or (state.leader != self._node_id and self._send_to is None):
                refused[name] = ErrorCode.NOT_LEADER_OR_FOLLOWER
            else:
                by_node.setdefault(state.leader, []).append(name)
        for led in by_node.values():
            ending.in_flight.update(led)  # all, before the first is sent: this node's partitions may answer at once
        for node_id, led in by_node.items():
            done = partial(self._sent, ending, led)
            if node_id == self._node_id:
                self._writer.write(ending.marker, led, done)
            else:
                assert self._send_to is not None
                self._send_to(node_id, ending.marker, led, done)
        if refused or not by_node:
            self._sent(ending, list(refused), refused)

    def _sent(self, ending: Ending, names: Sequence[TopicPartition], outcome: Outcome) -> None:
        """The markers to `names` were answered, or their connection has failed: those not written are sent again later."""
        ending.in_flight.difference_update(names)
        backoff_s = 0.0
        for name in names:
            code = outcome[name]
            if code == ErrorCode.NONE:
                ending.pending.pop(name, None)
            elif code == ErrorCode.TRANSACTION_COORDINATOR_FENCED:
                # If there is a newer coordinator, the metadata will say so, and the shard is given up. If not, a client that is
                # no coordinator sent a marker: the shard stays, because other transactional ids depend on it.
                backoff_s = FENCED_BACKOFF_S
                self._log_failure(ending, name, code, logging.WARNING)
            elif code == ErrorCode.INVALID_PRODUCER_EPOCH:
                # An open transaction there belongs to a later epoch of the producer and is not ended here.
                logger.warning(
                    "%s has seen a later epoch of producer %d than %d: the transaction of %r ends without a marker there",
                    name,
                    ending.marker.producer.id,
                    ending.marker.producer.epoch,
                    ending.order.transactional_id,
                )
                ending.pending.pop(name, None)
            else:
                backoff_s = max(backoff_s, RETRY_BACKOFF_S)
                self._log_failure(ending, name, code)
        if ending.hosted.is_over:
            return  # the next load of the shard begins again
        if not ending.pending:
            self._finish(ending)
        elif backoff_s:
            self._retry_later(ending, backoff_s)

    def _log_failure(self, ending: Ending, name: TopicPartition, code: int, first_level: int = logging.INFO) -> None:
        level = logging.DEBUG if ending.is_logged else first_level
        ending.is_logged = True
        what = "commit" if ending.order.is_commit else "abort"
        logger.log(
            level,
            "the %s of the transaction of %r is not in %s yet (%s): it is tried again",
            what,
            ending.order.transactional_id,
            name,
            error_name(code),
        )

    def _retry_later(self, ending: Ending, backoff_s: float) -> None:
        if ending not in self._retries:
            self._retries[ending] = asyncio.get_running_loop().call_later(backoff_s, self._retry, ending)

    def _retry(self, ending: Ending) -> None:
        self._retries.pop(ending, None)
        if not ending.hosted.is_over:
            self._send(ending)

    def _finish(self, ending: Ending) -> None:
        hosted, order = ending.hosted, ending.order
        if hosted.is_over or ending.is_finished:
            return
        if not hosted.has_enough_replicas:  # the record would be refused, and the shard given up
            self._retry_later(ending, RETRY_BACKOFF_S)
            return
        ending.is_finished = True
        try:
            hosted.submit(hosted.shard.complete(order.transactional_id, order.producer, hosted.now()))
        except KafkaError as refused:
            logger.error("the end of the transaction of %r could not be written: %s", order.transactional_id, refused)
            hosted.give_up()
