"""The controller of this node: while it leads the quorum it makes decisions on the newest state, commits them, then answers.

Owns the `ControllerState`. It is active from the moment when everything before its epoch is committed, until another node
leads. A decision's records are replayed and appended at once, so that the next decision builds on them; its caller is answered
when they are committed. A controller that is not active has no state: the node's `MetadataLoader` follows the log for it. When
it loses the lead it drops its state, and its waiting callers get NOT_CONTROLLER.

Loop rule: deciding and appending is one plain call, nothing comes between. A decision about many elements is made in a worker
thread (`large_decisions.py`): other decisions wait until it is appended. Nothing here awaits the publishing of metadata.
Periodic decisions (unclean elections, the balance of leaders, expired tokens) are made while it is active.
If a commit fails, the node stops: the state is then ahead of the disk, and no decision may build on it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ottla.broker.background import watched
from ottla.broker.runtime import activation
from ottla.broker.runtime.large_decisions import LargeDecision, decide_and_replay, is_large
from ottla.errors import KafkaError, LogDirectoryFailed
from ottla.errors.codes import ErrorCode
from ottla.metadata.controller.apis import DECISIONS, decision_of
from ottla.metadata.controller.brokers import fence_silent_brokers
from ottla.metadata.controller.decision import Asker, Decision
from ottla.metadata.controller.state import ControllerSettings, ControllerState
from ottla.metadata.delegation_tokens import TokenSettings
from ottla.metadata.image.cluster import Endpoint
from ottla.metadata.image.image import MetadataImage
from ottla.wire.api_table import ApiKey
from ottla.wire.base import Message

if TYPE_CHECKING:
    from ottla.broker.runtime.metadata_loader import MetadataLoader
    from ottla.broker.runtime.metadata_log import MetadataBatch
    from ottla.broker.runtime.quorum import QuorumRuntime
    from ottla.config.broker import BrokerConfig
    from ottla.env import World

    Decide = Callable[[ControllerState, int], Decision[bool]]
    Write = Callable[[Decide], Awaitable[bool]]

logger = logging.getLogger("ottla.controller")

R = TypeVar("R")
_NOT_REGISTERED = -1
_RETRY_MS = 100
_AFTER_FAILURE_MS = 1000
_REPEATED = (ApiKey.BROKER_REGISTRATION, ApiKey.BROKER_HEARTBEAT)
"""Requests whose change may be cut short by a crash, where metadata.version has no transactions: the broker asks again, and the
rest is decided then. They change all partitions of a broker, and cannot be made in smaller parts."""


class ControllerRuntime:
    """The controller of one node: a `QuorumListener`, called after the node's `MetadataLoader`."""

    def __init__(
        self,
        world: World,
        config: BrokerConfig,
        settings: ControllerSettings,
        quorum: QuorumRuntime,
        loader: MetadataLoader,
        endpoints: Sequence[Endpoint],
    ) -> None:
        self._world = world
        self._config = config
        self._settings = settings
        self._quorum = quorum
        self._loader = loader
        self.endpoints = endpoints
        """This controller's listeners."""
        self.incarnation_id = world.randomness.new_uuid()
        self._elected_epoch: int | None = None
        """The epoch in which this node leads the quorum, until it is active in it."""
        self._active_epoch: int | None = None
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._committed_offset = 0
        self._fencing: asyncio.TimerHandle | None = None
        self._large_first = asyncio.Lock()
        """Large decisions are made one after the other, with the small ones that have come meanwhile in between."""
        self._is_free = asyncio.Event()
        """Clear while a large decision is made."""
        self._is_free.set()
        self._periodic = PeriodicDecisions(settings, self.write)
        self._activated: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.own_broker_epoch: Callable[[], int] = lambda: _NOT_REGISTERED
        """Returns the epoch with which the broker in this process is registered, or -1."""
        self.state = ControllerState(settings, world.randomness)
        """The newest state. Decisions are made on it; its newest records may not be committed yet."""
        quorum.failure.add_done_callback(self._failed)

    @property
    def is_active(self) -> bool:
        return self._active_epoch is not None and not self._quorum.failure.done()

    @property
    def quorum(self) -> QuorumRuntime:
        """This node's replica of the metadata log."""
        return self._quorum

    @property
    def node_id(self) -> int:
        return self._settings.node_id

    @property
    def token_settings(self) -> TokenSettings:
        """The node's settings of delegation tokens."""
        return self._settings.tokens

    @property
    def epoch(self) -> int:
        """The controller epoch: the quorum's epoch in which it was elected."""
        return self._quorum.epoch

    async def wait_active(self) -> None:
        """Wait until this controller is active for the first time; raises the reason if the quorum fails before."""
        await self._activated

    # -- following the quorum

    def leader_changed(self, leader_id: int | None, epoch: int) -> None:
        """Another node leads, or this one does: then it becomes active as soon as its epoch has begun to be committed."""
        if self._active_epoch is not None and (leader_id != self._quorum.node_id or epoch != self._active_epoch):
            self._renounce(epoch)
        self._elected_epoch = epoch if leader_id == self._quorum.node_id else None

    def loaded_snapshot(self, snapshot: MetadataBatch) -> None:
        """Only a follower loads the snapshot of another node, and a follower has no state."""
        self._committed_offset = snapshot.last_offset + 1

    def committed(self, batches: Sequence[MetadataBatch]) -> None:
        """Answer the callers that wait for `batches`; become active if they begin this controller's epoch."""
        self._committed_offset = batches[-1].last_offset + 1
        while self._waiting and self._waiting[0][0] <= self._committed_offset:
            _, committed = self._waiting.popleft()
            if not committed.done():
                committed.set_result(None)
        # The leader's control batch is the first of its epoch: everything before it is committed with it, and in the image.
        if self._elected_epoch is not None and batches[-1].epoch == self._elected_epoch:
            self._activate(self._elected_epoch)

    def _activate(self, epoch: int) -> None:
        self._elected_epoch = None
        if not self._quorum.is_leader or self._quorum.epoch != epoch:
            return  # a higher epoch has come meanwhile: `leader_changed` is called when it is on disk
        image = self._loader.committed_image()
        state = self.state = ControllerState(self._settings, self._world.randomness, image, self._quorum.kraft_version)
        state.quorum_node_ids = self._quorum.voters.ids
        state.next_offset = self._quorum.end_offset
        self._active_epoch = epoch
        try:
            self._append_first_records(image)
        except KafkaError as refused:
            if refused.code != ErrorCode.NOT_CONTROLLER:
                raise
            if self._active_epoch is not None:
                self._renounce(self._quorum.epoch)  # it lost the lead in the step of an append: `leader_changed` comes later
        if not self.is_active:
            return
        state.activate(self._now_ms(), self.own_broker_epoch())
        logger.info("controller %d is active in epoch %d", self.node_id, epoch)
        if not self._activated.done():
            self._activated.set_result(None)
        self._periodic.start()
        self._check_in(self._settings.session_timeout_ms + 1)  # every broker has a session from now on, or registers again

    def _append_first_records(self, image: MetadataImage) -> None:
        """Append what a controller writes when it becomes active on `image`; NOT_CONTROLLER if it leads no more."""
        if activation.is_new_cluster(image):
            bootstrap = activation.read_bootstrap(self._world.disk, self._config.log.metadata_log_dir)
            is_cut_short = image.open_transaction is not None
            self._append(activation.first_records(bootstrap, is_cut_short, self._config.min_insync_replicas))
        else:
            self._append(activation.later_records(image))
        if self.is_active:  # else it has resigned during the append, and has no state
            self._append(self._register(self.state, 0).records)

    def _register(self, state: ControllerState, now_ms: int) -> Decision[None]:
        """Register this controller, unless it is registered or metadata.version keeps no controllers."""
        features = self._settings.supported_features
        return Decision(None, activation.registration(state.image, self.node_id, self.incarnation_id, self.endpoints, features))

    def _renounce(self, epoch: int) -> None:
        """Drop the state: its newest records may be gone from the log, and another controller decides now."""
        self._active_epoch = None
        self.close()
        self.state = ControllerState(self._settings, self._world.randomness)
        logger.info("controller %d is no longer active: the quorum is in epoch %d", self._settings.node_id, epoch)
        self._refuse_waiting(_no_longer_active(self._settings.node_id))

    # -- watching brokers

    def _fence_silent_brokers(self) -> None:
        """Fence the brokers whose sessions have expired, and set the timer for the next check."""
        if not self.is_active:
            return
        now_ms, own_epoch = self._now_ms(), self.own_broker_epoch()
        if own_epoch != _NOT_REGISTERED:
            # It sends no heartbeats in a quorum of one: it lives as long as this process, and has read what is published.
            session = self.state.sessions.touch(self.node_id, own_epoch, now_ms)
            session.metadata_offset = max(session.metadata_offset, self._loader.published_offset - 1)
        if not self._is_free.is_set():
            self._check_in(_RETRY_MS)  # the heartbeats that have come wait for the same decision, and are before this
            return
        wait_ms = _AFTER_FAILURE_MS
        try:
            wait_ms = self._fence_one(now_ms)
        except LogDirectoryFailed:
            pass  # the quorum has failed, and reports it
        except KafkaError as refused:
            if refused.code != ErrorCode.NOT_CONTROLLER:  # else it does not lead any more, and is about to renounce
                logger.error("a silent broker could not be fenced, which is tried again: %s", refused)
        finally:
            if self.is_active:  # after a failure too: without the timer no broker is fenced any more
                self._check_in(wait_ms)

    def _fence_one(self, now_ms: int) -> int:
        """Fence a broker whose session has expired, if there is one; returns in how many ms to check again."""
        check, records = fence_silent_brokers(self.state, now_ms)
        self._append(records, is_atomic=False)  # the record that fences is the last: without it, the rest is repeated
        if check.fenced:
            logger.warning("broker %d is fenced: no heartbeat within %d ms", *check.fenced, self._settings.session_timeout_ms)
        # Brokers that are unfenced later have a whole session from then on.
        wait_ms = self._settings.session_timeout_ms if check.next_check_ms is None else check.next_check_ms - now_ms
        return min(wait_ms, self._settings.session_timeout_ms)

    def _check_in(self, wait_ms: int) -> None:
        self._fencing = asyncio.get_running_loop().call_later(wait_ms / 1000, self._fence_silent_brokers)

    def close(self) -> None:
        """Stop watching brokers and making periodic decisions."""
        self._periodic.stop()
        if self._fencing is not None:
            self._fencing.cancel()
            self._fencing = None

    # -- writing

    async def call(self, request: Message, asker: Asker) -> Any:
        """The response to a request of an API in `metadata/controller/apis.py`, once its records are committed.

        Raises the `KafkaError` with which the decision refuses the request as a whole; nothing is written then.
        """
        if request.KEY not in DECISIONS:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, f"the controller decides nothing for API {request.KEY}: ask the quorum")
        decide = decision_of(request.KEY)
        if request.KEY == ApiKey.UPDATE_FEATURES and self.is_active:
            self.state.quorum_node_ids = self._quorum.voters.ids
            self.state.kraft_upgrade_refusal = self._quorum.refuse_upgrade()

        def decide_request(state: ControllerState, now_ms: int) -> Decision[Any]:
            if asker.mutations is not None:
                asker.mutations.begin()
            return decide(state, request, now_ms, asker)

        if is_large(request, self.state):
            return await self._write_large(decide_request)
        response = await self.write(decide_request, is_atomic=request.KEY not in _REPEATED)
        if request.KEY == ApiKey.UPDATE_FEATURES:
            try:
                await self.write(self._register)  # the new metadata.version may be the first that keeps controllers
            except KafkaError:
                pass  # another controller leads: this one registers there, and the change of the request is made
        return response

    async def write(self, decide: Callable[[ControllerState, int], Decision[R]], is_atomic: bool = True) -> R:
        """The response of `decide(state, now_ms)`, once its records are committed.

        A `KafkaError` that `decide` raises goes to the caller, and nothing is written. `now_ms` is from the monotonic clock.
        """
        while not self._is_free.is_set():
            await self._is_free.wait()
        self._check_active()
        self.state.next_offset = self._quorum.end_offset  # the quorum may have appended control records
        self.state.unix_ms = self._world.clock.now_ms()
        decision = decide(self.state, self._now_ms())
        try:
            if decision.raises_kraft_version:
                self._quorum.upgrade()
                self.state.kraft_version = self._quorum.kraft_version
            self._append(decision.records, is_atomic)
        except LogDirectoryFailed as failed:
            raise _has_failed(failed) from failed
        await self._committed_up_to(self._quorum.end_offset)
        return decision.response

    async def _write_large(self, decide: Callable[[ControllerState, int], Decision[R]]) -> R:
        """Like `write`, but decides in a worker thread, where the loop can run meanwhile."""
        async with self._large_first:
            self._is_free.clear()
            try:
                large = await self._decide_large(decide)
                if large.change is not None:
                    self._append_large(large)
            except LogDirectoryFailed as failed:
                raise _has_failed(failed) from failed
            finally:
                self._is_free.set()
        await self._committed_up_to(self._quorum.end_offset)
        return large.decision.response

    async def _decide_large(self, decide: Callable[[ControllerState, int], Decision[R]]) -> LargeDecision[R]:
        state = self.state
        while True:
            self._check_active()
            state.next_offset = self._quorum.end_offset
            state.unix_ms = self._world.clock.now_ms()
            call = partial(decide_and_replay, decide, state, self._now_ms(), self._quorum)
            large = await self._world.compute.run(call)
            if self.state is not state:
                raise _no_longer_active(self.node_id)
            self._check_active()
            if large.change is None:
                return large
            first = large.change.batches[0]
            # The quorum may have appended control records meanwhile. Or it leads no more, and this controller hears of it only
            # when the election is on disk: records of the old epoch must not be appended behind that.
            place = (self._quorum.epoch, self._quorum.end_offset)
            if self._quorum.is_leader and (first.epoch, first.base_offset) == place:
                return large

    def _append_large(self, large: LargeDecision[Any]) -> None:
        assert large.change is not None
        try:
            for batch in large.change.batches:
                self.state.take(large.image, batch.records, batch.base_offset)
            self._quorum.append(large.change)
        except Exception as failure:
            self._quorum.fail(failure)  # the state may be ahead of the log now: no decision may build on it
            raise

    def _check_active(self) -> None:
        if not self.is_active:
            raise KafkaError(
                ErrorCode.NOT_CONTROLLER, f"node {self._quorum.node_id} is not the active controller: ask again later"
            )

    def _append(self, records: Sequence[Message], is_atomic: bool = True) -> None:
        if not records:
            return
        change = self._quorum.prepare(records, self.state.image.metadata_version, is_atomic)
        try:
            # Replayed before it is appended: a log with a record that cannot be replayed could never be read again.
            for batch in change.batches:
                self.state.replay(batch.records, batch.base_offset, batch.epoch, batch.timestamp_ms)
            self._quorum.append(change)
        except Exception as failure:
            self._quorum.fail(failure)  # the state may be ahead of the log now: no decision may build on it
            raise

    def _now_ms(self) -> int:
        return int(self._world.clock.monotonic_s() * 1000)

    # -- answering

    def _committed_up_to(self, end_offset: int) -> asyncio.Future[None]:
        """A future that is done when everything below `end_offset` is committed; raises if it may never be.

        A leader that has not heard of a majority for too long resigns during the append itself. Waiting for an offset then
        would end when another leader has committed other records there.
        """
        if self._active_epoch is None:
            raise _no_longer_active(self.node_id)
        committed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if end_offset <= self._committed_offset:
            committed.set_result(None)
        else:
            self._waiting.append((end_offset, committed))
        return committed

    def _failed(self, failure: asyncio.Future[BaseException]) -> None:
        """Fail all waiting callers: their changes may or may not be on disk."""
        if not self._activated.done():
            self._activated.set_exception(failure.result())
            self._activated.exception()  # marks it as retrieved: a node that does not wait for it learns it otherwise
        self._refuse_waiting(_has_failed(failure.result()))

    def _refuse_waiting(self, refusal: KafkaError) -> None:
        waiting, self._waiting = self._waiting, deque()
        for _, committed in waiting:
            if not committed.done():
                committed.set_exception(refusal)


def _no_longer_active(node_id: int) -> KafkaError:
    return KafkaError(
        ErrorCode.NOT_CONTROLLER,
        f"node {node_id} is no longer the active controller; the change may or may not have been made: check before you try "
        "again",
    )


def _has_failed(reason: BaseException) -> KafkaError:
    return KafkaError(
        ErrorCode.NOT_CONTROLLER,
        f"the controller has failed and its node stops ({reason}); the change may or may not have been made: check before "
        "you try again",
    )


class PeriodicDecisions:
    """The decisions of one controller; `write` commits one and returns whether there is more to decide."""

    def __init__(self, settings: ControllerSettings, write: Write) -> None:
        self._settings = settings
        self._write = write
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._running: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """The controller is active from now on."""
        self.stop()
        self._wait("elect_unclean_leaders", self._settings.unclean_election_interval_ms)
        if self._settings.leader_balance_interval_ms is not None:
            self._wait("balance_leaders", self._settings.leader_balance_interval_ms)
        if self._settings.tokens.secret_key is not None:
            self._wait("remove_expired_tokens", self._settings.tokens.check_interval_ms)

    def stop(self) -> None:
        """The controller is not active any more, or stops."""
        for timer in self._timers.values():
            timer.cancel()
        for task in self._running:
            task.cancel()
        self._timers.clear()

    def _wait(self, name: str, interval_ms: int) -> None:
        self._timers[name] = asyncio.get_running_loop().call_later(interval_ms / 1000, self._begin, name, interval_ms)

    def _begin(self, name: str, interval_ms: int) -> None:
        task = watched(f"the controller's task {name}", self._decide(name))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        self._wait(name, interval_ms)

    async def _decide(self, name: str) -> None:
        from ottla.metadata.controller import delegation_tokens, elections  # late: not needed at a start

        decide: Decide = getattr(delegation_tokens if "token" in name else elections, name)
        try:
            while await self._write(decide):
                pass  # each decision has a limit, and other requests come between two
        except KafkaError as refused:
            logger.info("%s: not now: %s", name, refused)  # the controller is not active any more, or its node stops
