"""Looks into a running node, for the cluster's checkers: wraps a few methods of its quorum and its controller.

The wrappers change nothing. They pass on the votes that become durable or are granted, the batches that the node commits, the
images that it publishes, and what its controller answers. A violation must not look like a failure of the node, which would
only stop it: it is kept in `Watch.violation`, which ends the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextvars import Context, copy_context
from functools import partial
from typing import Any

from ottla.broker.node import Node
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.runtime.controller import ControllerRuntime
from ottla.broker.runtime.metadata_log import PreparedChange
from ottla.broker.runtime.quorum import QuorumRuntime
from ottla.broker.services import NodeServices
from ottla.broker.storage import Storage
from ottla.errors import OttlaError
from ottla.log.partition_log import PartitionLog
from ottla.metadata.controller.decision import Asker
from ottla.metadata.image.delta import MetadataDelta
from ottla.metadata.image.image import MetadataImage
from ottla.raft import effects as fx
from ottla.raft.roles.leader import Leader
from ottla.records.batch import iterate_batches
from ottla.sim.checkers.checker import Violation
from ottla.sim.cluster.checkers.checker import Answer, ClusterCheckers, Entry, HeldPartition, Logged, PartitionKey
from ottla.sim.trace import Trace
from ottla.wire.messages.vote import VoteRequest, VoteResponse

READ_BYTES = 1 << 22


class Watch:
    """What all nodes of a run report to: the checkers, the trace, and the first violation."""

    def __init__(self, checkers: ClusterCheckers, trace: Trace) -> None:
        self.checkers = checkers
        self.trace = trace
        self.partitions: dict[str, PartitionsWatch] = {}
        """The partitions of each node's newest life."""
        self.delayed: dict[str, list[tuple[Context, Callable[[], None]]]] = {}
        """Node whose proposals of ISRs are delayed → how to make each of them, and its process (`troubles.py`)."""
        self.violation: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def tell(self, event: Callable[..., None], *what: object) -> None:
        """Pass an event on to a checker, and keep the violation that it raises."""
        try:
            event(*what)
        except Violation as violation:
            if not self.violation.done():
                self.trace.note("checkers", "violation", str(violation))
                self.violation.set_exception(violation)


def watched_node(watch: Watch, name: str) -> type[Node]:
    """A `Node` that reports to `watch` under this name, for one life."""

    class WatchedNode(Node):
        _watched_partitions: PartitionsWatch | None = None

        async def _open_quorum(self, storage: Storage) -> QuorumRuntime:
            quorum = await super()._open_quorum(storage)
            watch.tell(watch.checkers.started, name)
            self._watched = _WatchedQuorum(watch, name, quorum)
            return quorum

        def _open_metadata(self, quorum: QuorumRuntime, endpoints: list[Any]) -> NodeServices:
            services = super()._open_metadata(quorum, endpoints)
            _watch_controller(watch, name, services.controller, self._watched)
            return services

        async def _publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
            await super()._publish(delta, image)
            watch.tell(watch.checkers.published, name, image)
            if self._watched_partitions is None and self._broker is not None and self._broker._partitions is not None:
                watched = PartitionsWatch(watch, name, self._broker._partitions)
                self._watched_partitions = watch.partitions[name] = watched
            if self._watched_partitions is not None:
                self._watched_partitions.published()

    return WatchedNode


class _WatchedQuorum:
    """The quorum of one life of a node."""

    def __init__(self, watch: Watch, name: str, quorum: QuorumRuntime) -> None:
        self._watch, self._name, self._quorum = watch, name, quorum
        self._votes: dict[object, VoteRequest] = {}
        self._vote_asked: VoteRequest | None = None
        """A Vote that is just being given to the replica."""
        self._told = -1
        """The offset up to which batches were reported as committed."""
        self._led_epoch = -1
        self.appended: list[Entry] | None = None
        """Gets the batches of the next change that the controller appends."""
        self.controller: ControllerRuntime | None = None
        driver = quorum._driver
        _wrap(driver, "_do", self._do)
        _wrap(driver, "_do_awaiting", self._do_awaiting)
        _wrap(quorum, "ask", self._ask)
        _wrap(quorum, "append", self._append)

    def _do(self, do: Callable[[fx.Effect], None], effect: fx.Effect) -> None:
        if isinstance(effect, fx.Answer):
            self._note_grant(effect)
        do(effect)
        if isinstance(effect, fx.Committed):
            self._committed(effect.offset)
        elif isinstance(effect, fx.AppendControls) and effect.epoch != self._led_epoch:
            self._led_epoch = effect.epoch
            self._watch.trace.note(self._name, "leads", f"epoch {effect.epoch} from {self._quorum.end_offset - 1}")
            log = list(self._batches(self._quorum.log.start_offset, self._quorum.end_offset))
            self._watch.tell(self._watch.checkers.led, self._name, effect.epoch, log)

    async def _do_awaiting(self, do: Callable[[fx.Effect], Any], effect: fx.Effect) -> None:
        await do(effect)
        if isinstance(effect, fx.Persist) and effect.election.voted is not None:
            self._watch.tell(self._watch.checkers.voted, self._name, effect.election.epoch, effect.election.voted.id)
        elif isinstance(effect, fx.Truncate):
            self._watch.trace.note(self._name, "truncates", f"its metadata log to {effect.offset}")
        elif isinstance(effect, fx.StoreSnapshot) and effect.is_last:
            self._watch.trace.note(self._name, "loads", f"snapshot {effect.snapshot_id.offset}")

    def _ask(self, ask: Callable[..., Any], request: Any, *more: Any) -> Any:
        if not isinstance(request, VoteRequest):
            return ask(request, *more)
        self._vote_asked = request
        pending = ask(request, *more)
        if self._vote_asked is not None:  # not answered at once
            self._votes[pending], self._vote_asked = request, None
        return pending

    def _note_grant(self, effect: fx.Answer) -> None:
        if not isinstance(effect.message, VoteResponse):
            return
        request = self._votes.pop(effect.token, None)
        if request is None:
            request, self._vote_asked = self._vote_asked, None
        assert request is not None, "every Vote that is answered was asked"
        asked = request.topics[0].partitions[0]
        for topic in effect.message.topics:
            if topic.partitions[0].vote_granted and not asked.pre_vote:
                self._watch.tell(self._watch.checkers.voted, self._name, asked.replica_epoch, asked.replica_id)

    def _append(self, append: Callable[[PreparedChange], None], change: PreparedChange) -> None:
        append(change)
        if self.appended is not None:
            self.appended += [Logged.of(view).entry for view in iterate_batches(change.data)]
            self.appended = None
        if self.controller is not None:
            offset = change.batches[-1].last_offset
            self._watch.tell(self._watch.checkers.appended, self._name, offset, self.controller.state.image)

    def _committed(self, offset: int) -> None:
        quorum, log = self._quorum, self._quorum.log
        start = max(self._told, log.start_offset)  # a snapshot may have replaced the log
        try:
            batches = list(self._batches(start, offset))
        except (OSError, OttlaError):
            return  # its disk has failed, which ends the node
        self._told = offset
        is_leader = isinstance(quorum.replica.role, Leader)
        self._watch.tell(self._watch.checkers.committed, self._name, quorum.epoch, is_leader, offset, batches)

    def _batches(self, start: int, end: int) -> Iterator[Logged]:
        return logged_batches(self._quorum.log.partition_log, start, end)


def logged_batches(log: PartitionLog, start: int, end: int) -> Iterator[Logged]:
    """The batches of a log from the one with offset `start` on, as far as they end before offset `end`."""
    while start < end:
        found = log.read(start, READ_BYTES)
        if found.records is None:
            return
        for view in iterate_batches(found.records.read(), allow_cut_end=True):
            if view.next_offset > end:
                return
            if view.next_offset > start:
                yield Logged.of(view)
                start = view.next_offset


def _wrap(owner: object, method: str, wrapper: Callable[..., Any]) -> None:
    """Call `wrapper` instead of a method, with the method as its first argument."""
    original = getattr(owner, method)
    setattr(owner, method, lambda *what: wrapper(original, *what))


def _watch_controller(watch: Watch, name: str, controller: ControllerRuntime, quorum: _WatchedQuorum) -> None:
    activate, call, write = controller._activate, controller.call, controller.write
    quorum.controller = controller
    called: list[list[Entry]] = []

    def watched_activate(epoch: int) -> None:
        activate(epoch)
        watch.trace.note(name, "active", f"controller in epoch {epoch}")
        watch.tell(watch.checkers.activated, name, epoch)

    async def watched_call(request: Any, asker: Asker) -> Any:
        broker = controller.state.image.cluster.brokers.get(getattr(request, "broker_id", -1))
        appended: list[Entry] = []
        called.append(appended)  # taken by `watched_write`, before anything else runs
        try:
            response = await call(request, asker)
        finally:
            called[:] = [each for each in called if each is not appended]  # refused before it was decided
        if not getattr(response, "error_code", 0):
            epoch = None if broker is None else broker.epoch
            watch.tell(watch.checkers.answered, name, Answer(request, response, appended, epoch))
        return response

    async def watched_write(decide: Callable[..., Any], is_atomic: bool = True) -> Any:
        appended: list[Entry] = called.pop() if called else []

        def watched_decide(*what: Any) -> Any:
            decision = decide(*what)
            quorum.appended = appended if decision.records else None
            return decision

        return await write(watched_decide, is_atomic)

    for method, wrapper in (("_activate", watched_activate), ("call", watched_call), ("write", watched_write)):
        setattr(controller, method, wrapper)


class PartitionsWatch:
    """The partitions of one life of a node.

    It waits on every partition as a produce request does, but its wait never ends: it learns of every move of the high
    watermark of a leader before anyone is answered. It also hears of every ISR that a leader proposes, and can delay it.
    """

    def __init__(self, watch: Watch, name: str, partitions: Partitions) -> None:
        self._watch, self._name, self._partitions = watch, name, partitions
        self._wants_isr_change = partitions.wants_isr_change
        partitions.wants_isr_change = self._isr_wanted  # type: ignore[method-assign]  # what this is for

    def published(self) -> None:
        """The node has applied metadata."""
        for partition in self._partitions:
            partition.ack_waits.setdefault(self)
            self.settle(partition)

    def settle(self, partition: Partition) -> bool:
        """As `AckWaiter.settle`: the high watermark has moved, or the leader has changed."""
        self._watch.tell(self._watch.checkers.partition_held, self._name, held(partition))
        return False

    def ends(self) -> None:
        """The process is about to be killed. A leader without followers would tell of its high watermark in the next turn."""
        for partition in self._partitions:
            if partition.is_leading and partition.log.failure is None:
                self.settle(partition)

    def held(self, key: PartitionKey) -> HeldPartition | None:
        """One of its partitions, now; None if its log cannot be read: the node is stopping, or its disk has failed."""
        partition = self._partitions.by_id.get(key[0], {}).get(key[1])
        return None if partition is None or partition.log.failure is not None else held(partition)

    def _isr_wanted(self, partition: Partition) -> None:
        if partition.in_sync is not None and partition.in_sync.pending is not None:
            pending = partition.in_sync.pending
            self._watch.tell(self._watch.checkers.isr_proposed, self._name, held(partition), pending.isr)
        delayed = self._watch.delayed.get(self._name)
        if delayed is None:
            self._wants_isr_change(partition)
        else:
            self._watch.trace.note(self._name, "delays", f"a proposal for the ISR of {partition.name}")
            delayed.append((copy_context(), partial(self._wants_isr_change, partition)))


def held(partition: Partition) -> HeldPartition:
    """The state of a partition on its node."""
    log = partition.log

    def entries(start: int, end: int) -> Sequence[Entry]:
        try:
            return [each.entry for each in logged_batches(log, max(start, log.log_start_offset), end)]
        except (OSError, OttlaError):
            return ()  # its disk has failed

    return HeldPartition(
        (partition.topic_id, partition.index),
        partition.name,
        partition.leader,
        partition.leader_epoch,
        partition.partition_epoch,
        partition.isr,
        partition.is_leading,
        log.config.compact,
        log.log_start_offset,
        log.high_watermark,
        log.log_end_offset,
        entries,
    )
