"""`TransactionManager`: the transactions of one producer, as a machine.

    UNINITIALIZED ─▶ INITIALIZING ─▶ READY ─▶ IN_TRANSACTION ─▶ COMMITTING ─▶ READY
                                       ▲            │  └──▶ ABORTABLE_ERROR ◀┘
                                       └─ ABORTING ◀┴────────────┘                 any state ─▶ FATAL_ERROR

With two-phase commit (KIP-939) IN_TRANSACTION and INITIALIZING may be followed by PREPARED, which allows only an end.

One request to a coordinator is in flight at a time. Under transaction version 1 partitions and groups are added to the
transaction before anything is sent to them; under version 2 Produce and TxnOffsetCommit add them, and EndTxn raises the epoch.

An EndTxn without an answer is repeated with the same producer id and epoch until its outcome is known, and no transaction
begins before that: so it can never end a later one. An add without an answer may have begun the transaction: an abort repeats
the add until it is answered, and then sends EndTxn. A coordinator refuses the EndTxn of a transaction that it has not begun.

A caller may stop waiting. It then repeats its call (init, commit or abort), and gets the outcome of the same operation, also if
that is done by then.

Version notes: AddPartitionsToTxn v4+ is for brokers; EndTxn v5 and TxnOffsetCommit v5 belong to transaction version 2.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from ottla.client_core.coordinators import CoordinatorFinder, CoordinatorKind
from ottla.client_core.machine import Channel, Request
from ottla.client_core.metadata import Metadata
from ottla.client_core.offsets import ConsumerGroupMetadata, OffsetAndMetadata
from ottla.client_core.producer import transaction_requests as requests
from ottla.client_core.producer.collaborators import TransactionSettings
from ottla.client_core.producer.idempotence import Idempotence, Key
from ottla.client_core.producer.prepared_transactions import PreparedTransaction, TransactionIdentity
from ottla.client_core.producer.transaction_requests import Pending, Verdict, is_fatal_for_producer, verdict_of
from ottla.env.backoff import Backoff
from ottla.errors import IllegalStateError, InvalidProducerEpochError, KafkaError, ProducerFencedError
from ottla.errors.codes import ErrorCode
from ottla.errors.faults import without_frames

_FENCED = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED})

NEWEST_VERSION = 2
"""The newest transaction.version."""
IMPLICIT_SINCE_VERSION = 2
"""Requests add partitions and groups to the transaction (KIP-890)."""


class State(Enum):
    """The states of a transactional producer; the module's docstring has the diagram."""

    UNINITIALIZED = "not initialized"
    INITIALIZING = "being initialized"
    READY = "ready"
    IN_TRANSACTION = "in a transaction"
    PREPARED = "in a prepared transaction"
    COMMITTING = "committing a transaction"
    ABORTING = "aborting a transaction"
    ABORTABLE_ERROR = "in a transaction that must be aborted"
    DETACHED = "unusable: its transaction was handed over"
    FATAL_ERROR = "unusable after an error"


class TransactionManager:
    """The transactions of one transactional id."""

    def __init__(
        self,
        transactional_id: str,
        settings: TransactionSettings,
        idempotence: Idempotence,
        metadata: Metadata,
        random_below: Callable[[int], int],
    ) -> None:
        self.transactional_id = transactional_id
        self.state = State.UNINITIALIZED
        self.error: KafkaError | None = None
        """Why the transaction must be aborted, or why the producer is unusable."""
        self.is_implicit = False
        """Whether requests add partitions and groups to the transaction (version 2). It changes only with a new epoch."""
        self.version_max = NEWEST_VERSION
        """The newest transaction.version that is used, if the cluster has it. The simulator's older clients set 1."""
        self.settings = settings
        self.idempotence = idempotence
        self.coordinator = CoordinatorFinder(metadata, CoordinatorKind.TRANSACTION, transactional_id, settings, random_below)
        self._metadata = metadata
        self._random_below = random_below
        self._group_coordinators: dict[str, CoordinatorFinder] = {}
        self._finder_of: dict[Request, CoordinatorFinder] = {}
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, random_below)
        self._not_before_ms = 0
        self._in_flight: Request | None = None
        self._partitions: set[Key] = set()
        self._new_partitions: set[Key] = set()
        self._offset_commits: deque[requests.OffsetCommit] = deque()
        self._has_offsets = False
        self._unsure: requests.Context | None = None
        """The last request to add partitions or offsets that got no answer: it may have begun the transaction."""
        self._is_bump_needed = False
        self.is_ending = False
        """Whether the last records are being sent before an end: others would be sent behind it."""
        self.is_keeping = False
        """Whether the producer that is being initialized keeps the transaction that an earlier one has prepared."""
        self.prepared: PreparedTransaction | None = None
        """The transaction that is prepared, in the state PREPARED."""
        self._has_kept = False
        """Whether it is one of an earlier producer."""
        self._pending: Pending | None = None
        """What the caller of init, commit or abort waits for."""
        self._call = State.UNINITIALIZED
        """The state that this call began with: INITIALIZING, COMMITTING or ABORTING. An end may go on to INITIALIZING."""
        self._last: Pending | None = None
        """The last such operation, once it is done, until the next transaction begins."""

    # Calls of the producer

    def initialize(self, *, keep_prepared: bool = False) -> Pending:
        """Get the producer's id and epoch; fences earlier producers with the same transactional id.

        `keep_prepared`: what an earlier producer has left open is not aborted, but PREPARED here.
        """
        if (repeated := self._repeated(State.INITIALIZING)) is not None:
            return repeated
        self._check("init_transactions", State.UNINITIALIZED)
        self.is_keeping = keep_prepared
        self.coordinator.want()
        return self._wait(State.INITIALIZING, f"the coordinator to give {self.transactional_id} its producer id")

    def begin(self) -> None:
        """Begin a transaction. The brokers learn of it with the first record or offset."""
        self._check("begin_transaction", State.READY)
        self._last = None
        self.state = State.IN_TRANSACTION

    def _choose_version(self) -> None:
        version = min(self._metadata.features.get("transaction.version", 0), self.version_max)
        self.is_implicit = version >= IMPLICIT_SINCE_VERSION

    def prepare(self) -> PreparedTransaction:
        """Allow nothing but an end from now on. All batches are done by now."""
        if not self.settings.transaction_two_phase_commit_enable:
            raise IllegalStateError("prepare_transaction needs transaction.two.phase.commit.enable=true")
        self._check("prepare_transaction", State.IN_TRANSACTION)
        if self._new_partitions or self._offset_commits:
            raise IllegalStateError("prepare_transaction: records or offsets are still on their way; flush first")
        self.state = State.PREPARED
        self.prepared = PreparedTransaction(*self.idempotence.producer)
        return self.prepared

    def check_send(self) -> None:
        """Raise if records cannot be sent now. May be called from every thread."""
        if self.state is not State.IN_TRANSACTION:
            self._check("send", State.IN_TRANSACTION)
        if self.is_ending:
            raise IllegalStateError("send is not possible now: the transaction is being ended; begin another one first")

    def send_offsets(self, offsets: Mapping[Key, OffsetAndMetadata], group: ConsumerGroupMetadata) -> Pending:
        """Commit a group's offsets if and only if the transaction is committed."""
        self._check("send_offsets_to_transaction", State.IN_TRANSACTION)
        commit = requests.OffsetCommit(group, dict(offsets))
        if not offsets:  # TxnOffsetCommit without offsets begins no transaction, and EndTxn would then be refused
            commit.pending.finish()
            return commit.pending
        commit.is_added = self.is_implicit
        self._has_offsets = self._has_offsets or self.is_implicit
        self._offset_commits.append(commit)
        return commit.pending

    def end(self, *, is_commit: bool) -> Pending:
        """Commit or abort. All batches are done by now: the caller has flushed, or aborted what was not sent."""
        wanted = State.COMMITTING if is_commit else State.ABORTING
        if (repeated := self._repeated(wanted)) is not None:
            return repeated
        if is_commit:
            self._check("commit_transaction", State.IN_TRANSACTION, State.PREPARED)
        else:
            self._check("abort_transaction", State.IN_TRANSACTION, State.PREPARED, State.ABORTABLE_ERROR)
            self._new_partitions.clear()
            for commit in self._offset_commits:
                commit.pending.finish(self.error or IllegalStateError("the transaction was aborted"))
            self._offset_commits.clear()
        pending = self._wait(wanted, f"the coordinator to {'commit' if is_commit else 'abort'} the transaction")
        if not self._is_started:
            self._ended()
        return pending

    def _repeated(self, call: State) -> Pending | None:
        """The operation that an earlier call of the same kind has begun, if no caller has got its outcome."""
        pending = self._pending or self._last
        return pending if pending is not None and self._call is call and not pending.is_claimed else None

    def _wait(self, call: State, what: str) -> Pending:
        """Begin the operation of a call."""
        self.state = self._call = call
        self._last = None
        self._pending = Pending(what)
        return self._pending

    def _finish(self, error: KafkaError | None = None) -> None:
        """The operation is done."""
        pending, self._pending = self._pending, None
        if pending is not None:
            self._last = pending
            pending.finish(error)

    def detach(self) -> TransactionIdentity:
        """Leave the transaction open, for another process to end. All batches are done by now. This producer is then done."""
        self._check("detach_transaction", State.IN_TRANSACTION)
        if self._new_partitions or self._offset_commits:
            raise IllegalStateError("detach_transaction: records or offsets are still on their way; flush first")
        self.state = State.DETACHED
        return TransactionIdentity(self.transactional_id, *self.idempotence.producer)

    @property
    def is_open(self) -> bool:
        """Whether a transaction has begun and was neither committed nor aborted."""
        return self.state in (State.IN_TRANSACTION, State.ABORTABLE_ERROR)

    @property
    def ending(self) -> Pending | None:
        """The commit or abort that is under way."""
        return self._pending if self.state in (State.COMMITTING, State.ABORTING) else None

    @property
    def _is_started(self) -> bool:
        """Whether the coordinator knows of the transaction, may know of it, or is going to."""
        is_adding = self._new_partitions or self._offset_commits or self._in_flight or self._unsure
        return self._is_begun or bool(is_adding)

    @property
    def _is_begun(self) -> bool:
        """Whether the coordinator knows of the transaction. Under version 2 it may, and takes an EndTxn anyway."""
        return bool(self._partitions or self._has_offsets or self._has_kept)

    def _check(self, call: str, *states: State) -> None:
        if self.state in states:
            return
        if self.state in (State.FATAL_ERROR, State.ABORTABLE_ERROR) and self.error is not None:
            advice = "close this producer" if self.state is State.FATAL_ERROR else "abort the transaction"
            text = f"{call}: the producer is {self.state.value}: {self.error}. Now {advice}"
            # A program that hands over to the newer producer catches the fencing, at any call.
            if isinstance(self.error, ProducerFencedError | InvalidProducerEpochError):
                raise type(self.error)(text) from self.error
            raise IllegalStateError(text) from self.error
        hint = {
            State.UNINITIALIZED: "call init_transactions first",
            State.READY: "it needs to be called once only" if call == "init_transactions" else "call begin_transaction first",
            State.IN_TRANSACTION: "commit or abort it first",
            State.PREPARED: "complete, commit or abort it first",
        }.get(self.state, "wait for that call to end, or repeat it")
        raise IllegalStateError(f"{call} is not possible now: the producer is {self.state.value}; {hint}")

    # What the sender asks (Gate)

    @property
    def is_fatal(self) -> bool:
        """Whether the producer is unusable."""
        return self.state is State.FATAL_ERROR

    @property
    def is_spoiled(self) -> bool:
        """Whether the transaction must be aborted, or the producer is unusable."""
        return self.state in (State.ABORTABLE_ERROR, State.FATAL_ERROR)

    def may_send(self, key: Key) -> bool:
        """Whether records may go to a partition now. If it is not in the transaction yet, it is going to be added."""
        if self.state is not State.IN_TRANSACTION:
            return False  # outside of it, a record would begin another one, which nobody ends
        if key in self._partitions:
            return True
        if self.is_implicit:
            self._partitions.add(key)
            return True
        self._new_partitions.add(key)
        return False

    def batch_failed(self, error: KafkaError) -> None:
        """A batch could not be stored: the transaction has lost a part of its records."""
        if is_fatal_for_producer(error):
            self._die(error)
        else:
            self._spoil(error)

    # Machine

    def step(self, now_ms: int) -> list[Request]:
        found: list[Request] = []
        if self.coordinator.error is not None and self.state is not State.FATAL_ERROR:
            self._die(self.coordinator.error)
        if self._in_flight is None and now_ms >= self._not_before_ms and not self.is_fatal:
            due = self._next_request()
            if due is not None:
                self._in_flight = due
                found.append(due)
        for finder in (self.coordinator, *self._group_coordinators.values()):
            for request in finder.step(now_ms):
                self._finder_of[request] = finder
                found.append(request)
        return found

    def answered(self, request: Request, response: Any, version: int, now_ms: int) -> None:
        finder = self._finder_of.pop(request, None)
        if finder is not None:
            finder.answered(request, response, version, now_ms)
            return
        error = requests.error_in(response)
        if error is not None:
            self._refused(request, error, now_ms)
            return
        self._in_flight = None
        self._backoff.succeeded()
        self._succeeded(request.context, response)

    def failed(self, request: Request, error: KafkaError, now_ms: int) -> None:
        finder = self._finder_of.pop(request, None)
        if finder is not None:
            finder.failed(request, error, now_ms)
        else:
            if request.context.kind in requests.ADDS:
                self._unsure = request.context
            self._refused(request, error, now_ms)

    def next_deadline_ms(self) -> int | None:
        deadlines = [
            at_ms
            for finder in (self.coordinator, *self._group_coordinators.values())
            if (at_ms := finder.next_deadline_ms()) is not None
        ]
        if self._in_flight is None and self._has_work:
            deadlines.append(self._not_before_ms)
        return min(deadlines) if deadlines else None

    @property
    def _has_work(self) -> bool:
        """Whether a request waits only for its time: without a coordinator it waits for that."""
        if self.is_fatal or not self.coordinator.is_ready:
            return False
        if self._offset_commits and self._offset_commits[0].is_added:
            finder = self._group_coordinators.get(self._offset_commits[0].group.group_id)
            return finder is None or finder.is_ready
        return self._has_request

    @property
    def _has_request(self) -> bool:
        is_ending = self.state in (State.COMMITTING, State.ABORTING, State.INITIALIZING)
        return is_ending or bool(self._new_partitions or self._offset_commits)

    # Requests

    def _next_request(self) -> Request | None:
        if self.state is State.UNINITIALIZED or not self._has_request:
            return None
        node = self.coordinator.connected(Channel.DATA)
        if node is None:
            return None
        if self.state is State.INITIALIZING:
            return requests.init_producer_id(self, node)
        if self.state is State.ABORTING and not self._is_begun and self._unsure is not None:
            return requests.add_again(self, node, self._unsure)
        if self._new_partitions:
            return requests.add_partitions(self, node, sorted(self._new_partitions))
        if self._offset_commits:
            return self._offsets_request(self._offset_commits[0], node)
        if self.state in (State.COMMITTING, State.ABORTING):
            return requests.end_transaction(self, node, is_commit=self.state is State.COMMITTING)
        return None

    def _offsets_request(self, commit: requests.OffsetCommit, node: int) -> Request | None:
        if not commit.is_added:
            return requests.add_offsets(self, node, commit)
        group_id = commit.group.group_id
        finder = self._group_coordinators.get(group_id)
        if finder is None:
            finder = CoordinatorFinder(self._metadata, CoordinatorKind.GROUP, group_id, self.settings, self._random_below)
            finder.connections = self.coordinator.connections
            self._group_coordinators[group_id] = finder
            finder.want()
        if finder.error is not None:
            self._offset_commits.popleft().pending.finish(finder.error)
            self._spoil(finder.error)
            finder.want()
            return None
        group_node = finder.connected(Channel.GROUP)
        return None if group_node is None else requests.commit_offsets(self, group_node, commit)

    def _succeeded(self, context: requests.Context, response: Any) -> None:
        if context.kind is requests.Kind.INIT:
            self.idempotence.take_id(response.producer_id, response.producer_epoch)
            self.idempotence.restart()
            self._is_bump_needed = False
            self._choose_version()
            self._ended(self._kept_in(response))
        elif context.kind is requests.Kind.ADD_PARTITIONS:
            self._partitions.update(context.partitions)
            self._new_partitions.difference_update(context.partitions)
        elif context.kind is requests.Kind.ADD_OFFSETS and context.commit is not None:
            context.commit.is_added = self._has_offsets = True
        elif context.kind is requests.Kind.COMMIT_OFFSETS and context.commit is not None:
            if context.commit in self._offset_commits:
                self._offset_commits.remove(context.commit)
            context.commit.pending.finish()
        elif context.kind is requests.Kind.END:
            self._end_answered(response)

    def _end_answered(self, response: Any) -> None:
        """EndTxn has raised the epoch under version 2. After version 1, InitProducerId does it where a new epoch is needed."""
        was_implicit = self.is_implicit
        if response.producer_id >= 0 and was_implicit:
            self.idempotence.take_id(response.producer_id, response.producer_epoch)
            self.idempotence.restart()
        self._choose_version()
        # A new epoch after an abort, so that what is still on its way cannot be stored later. And before the first transaction
        # of version 2: a leader that has no marker of the last transaction yet would take its records, under the same epoch,
        # for part of that one.
        if not was_implicit and (self._is_bump_needed or self.is_implicit):
            self.state = State.INITIALIZING
        else:
            self._ended()

    def _refused(self, request: Request, error: KafkaError, now_ms: int) -> None:
        self._in_flight = None
        context: requests.Context = request.context
        verdict = verdict_of(error, request.message.KEY)
        if self.state is State.ABORTING and context.kind in requests.ADDS:
            if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                verdict = Verdict.ABORT  # a deleted topic must not keep the abort from ending
            if verdict is Verdict.ABORT:
                self._unsure = None
        if verdict is Verdict.RELOCATE:
            self._relocate(context, error)
            verdict = Verdict.RETRY
        if verdict is Verdict.RETRY:
            self._not_before_ms = now_ms + self._backoff.failed()
        elif verdict is Verdict.ABORT and context.kind is not requests.Kind.INIT:
            if context.commit is not None and context.commit in self._offset_commits:
                self._offset_commits.remove(context.commit)
                context.commit.pending.finish(error)
            self._new_partitions.difference_update(context.partitions)
            self._spoil(error)
        else:
            self._die(error)
        if self.state is State.ABORTING and not self._is_started:
            self._ended()  # the add that the abort has waited for was refused: there is nothing to end

    def _relocate(self, context: requests.Context, error: KafkaError) -> None:
        if context.kind is requests.Kind.COMMIT_OFFSETS and context.commit is not None:
            finder = self._group_coordinators[context.commit.group.group_id]
        else:
            finder = self.coordinator
        finder.lost(str(error))
        finder.want()

    # Ends

    def _kept_in(self, response: Any) -> PreparedTransaction | None:
        """The transaction of an earlier producer that this one has to end first."""
        self.is_keeping = False
        if response.ongoing_txn_producer_id < 0:
            return None
        return PreparedTransaction(response.ongoing_txn_producer_id, response.ongoing_txn_producer_epoch)

    def _ended(self, prepared: PreparedTransaction | None = None) -> None:
        """The producer is initialized, or the transaction has ended and another may begin, after one that is prepared."""
        self._partitions.clear()
        self._new_partitions.clear()
        self._has_offsets = False
        self._unsure = None
        self.error = None
        self.prepared = prepared
        self._has_kept = prepared is not None
        self.state = State.READY if prepared is None else State.PREPARED
        self._finish()

    def _spoil(self, error: KafkaError) -> None:
        """The transaction must be aborted."""
        if self.state not in (State.IN_TRANSACTION, State.COMMITTING):
            return
        self.error = without_frames(error)
        self.state = State.ABORTABLE_ERROR
        self._is_bump_needed = True
        self._finish(error)

    def _die(self, error: KafkaError) -> None:
        """The producer cannot go on."""
        if error.code in _FENCED:
            text = (
                f"another producer with transactional.id {self.transactional_id} has started, or the transaction took longer "
                "than transaction.timeout.ms: this producer is fenced. Close it"
            )
            error = ProducerFencedError(text)
        self.error = without_frames(error)
        self.state = State.FATAL_ERROR
        for commit in self._offset_commits:
            commit.pending.finish(error)
        self._offset_commits.clear()
        self._finish(error)
