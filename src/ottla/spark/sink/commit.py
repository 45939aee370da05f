"""The driver's side of exactly once: decides about a batch, ends its transactions, aborts what is left over.

Spark runs `commit` in a Python process of the driver that it keeps for the next batch, so the fence stays open between batches.
With several sinks in a session Spark moves a query's commits between such processes, so a fence that was kept is a hint: it is
used only if the record that it wrote last is the one that the batch's tasks read from the log. Otherwise a new one is opened,
and the log says what the last record is. Brokers forget a transactional id that was not used for a while, so a fence is not
kept for long either.

A batch write has no next run that could finish it or abort what is left over. So its driver does that itself: it looks for
transactions that were left open once more at the end, and finishes a decided write also if Spark calls `abort`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import ottla
from ottla.client_core.producer.prepared_transactions import Finish
from ottla.errors import InvalidTxnStateError, KafkaError, TransactionalIdNotFoundError, UnsupportedVersionError
from ottla.spark import clients
from ottla.spark.errors import SinkError
from ottla.spark.sink import protocol
from ottla.spark.sink.ledger import Fence, Ledger, admin_of
from ottla.spark.sink.options import SinkOptions, TwoPhase
from ottla.spark.sink.protocol import Decision, HeldTransaction, Look, State, TaskResult, driver_id, query_prefix
from ottla.spark.sink.steps import reached

if TYPE_CHECKING:
    from ottla import Admin, Producer


THREADS_MAX = 16


def look_at(admin: Admin, held: Sequence[HeldTransaction]) -> dict[str, Look | None]:
    """What the coordinators say about transactions; None for an id that they do not know."""
    described = admin.describe_transactions([each.transactional_id for each in held])
    looks: dict[str, Look | None] = {}
    for name, error in described.errors.items():
        if not isinstance(error, TransactionalIdNotFoundError):
            raise error
        looks[name] = None
    for name, found in described.values_found.items():
        looks[name] = Look(found.state, found.producer_id, found.producer_epoch)
    return looks


def keep_all(producer: Producer[Any, Any], held: Sequence[HeldTransaction]) -> tuple[HeldTransaction, ...]:
    """The transactions, which never time out any more, with their new identities. Some stay as they are.

    Those are what the cluster cannot keep (it has no two-phase commit), and what is not open any more: look at it.
    """

    def keep(each: HeldTransaction) -> HeldTransaction:
        try:
            kept = producer.keep_transaction(*each[:3])
        except UnsupportedVersionError:
            return each
        return each if kept is None else HeldTransaction(*kept, each.task, each.rows)

    if not held:
        return ()
    with ThreadPoolExecutor(min(THREADS_MAX, len(held))) as threads:
        return tuple(threads.map(keep, held))


def commit_all(producer: Producer[Any, Any], held: Sequence[HeldTransaction]) -> list[HeldTransaction]:
    """Commit every transaction; returns those that had been aborted before. Raises if the outcome of one is unknown."""

    def commit(each: HeldTransaction) -> bool:
        try:
            result = producer.finish_transaction(*each[:3], commit=True)
        except (InvalidTxnStateError, TransactionalIdNotFoundError):
            return False
        return result in (Finish.DONE_NOW, Finish.DONE_BEFORE)

    if not held:
        return []
    done = [commit(held[0])]
    reached("ending:first")
    if len(held) > 1:
        with ThreadPoolExecutor(min(THREADS_MAX, len(held) - 1)) as threads:
            done += threads.map(commit, held[1:])
    return [each for each, is_done in zip(held, done, strict=True) if not is_done]


def open_transactions(admin: Admin, query: str) -> list[HeldTransaction]:
    """The transactions that a query's tasks have open now. Task and rows are unknown."""
    prefix, driver = query_prefix(query), driver_id(query)
    listed = [each.transactional_id for each in admin.list_transactions(states=["Ongoing"])]
    ours = [name for name in listed if name.startswith(prefix) and name != driver]
    if not ours:
        return []
    described = admin.describe_transactions(ours)
    for error in described.errors.values():
        if not isinstance(error, TransactionalIdNotFoundError):
            raise error
    found = sorted(described.values_found.items())
    return [
        HeldTransaction(name, each.producer_id, each.producer_epoch, -1, 0) for name, each in found if each.state == "Ongoing"
    ]


def idle_ids(admin: Admin, query: str) -> list[str]:
    """The transactional ids of a query's tasks that have been initialised, and have no transaction yet."""
    prefix, driver = query_prefix(query), driver_id(query)
    listed = [each.transactional_id for each in admin.list_transactions(states=["Empty"])]
    return [name for name in listed if name.startswith(prefix) and name != driver]


def fence_idle(client: Mapping[str, str], ids: Sequence[str]) -> None:
    """Initialise ids again: the tasks that have them can open no transaction any more."""
    for each in ids:
        producer: Producer[Any, Any] = ottla.Producer(config={**client, "transactional.id": each})
        try:
            producer.init_transactions()
        finally:
            producer.close(timeout=1)


def abort_all(producer: Producer[Any, Any], held: Sequence[HeldTransaction]) -> None:
    """Abort these transactions, if they are still open. A later transaction with the same id is not touched."""

    def abort(each: HeldTransaction) -> None:
        with suppress(InvalidTxnStateError, TransactionalIdNotFoundError):
            producer.finish_transaction(*each[:3], commit=False)

    if held:
        with ThreadPoolExecutor(min(THREADS_MAX, len(held))) as threads:
            list(threads.map(abort, held))


logger = logging.getLogger("ottla.spark.sink")

KILL_S = 3.0
"""How long a task may go on writing after Spark has killed it: spark.python.task.killTimeout (2 s), and a little more."""

FENCE_KEPT_S = 3600.0
"""How long a fence may be unused: brokers forget its id after transactional.id.expiration.ms, a week by default."""
FENCES_MAX = 8
"""How many fences a process keeps. Each has connections, and most commits of many queries move between processes anyway."""

_ledgers: dict[tuple[str, str], Ledger] = {}
_fences: dict[tuple[str, str], Fence] = {}
"""By query and run, the one that was used last at the end."""


def ledger_of(options: SinkOptions) -> Ledger:
    """This process's view of the decisions topic."""
    key = repr(sorted(options.client.items())), options.decisions_topic
    if key not in _ledgers:
        _ledgers[key] = Ledger(options.client, options.decisions_topic)
    return _ledgers[key]


def close_ledgers() -> None:
    """Close the connections that this process keeps for reading decisions."""
    while _ledgers:
        _ledgers.popitem()[1].close()


class Driver:
    """One query's commits and aborts. `is_once`: a batch write, which is never replayed and leaves no record."""

    def __init__(self, options: SinkOptions, *, is_once: bool = False) -> None:
        self._options = options
        self.is_once = is_once
        self._admin = admin_of(options.client)

    def commit(self, results: Sequence[TaskResult], batch: int) -> None:
        """Make every row of the batch visible, or raise."""
        reached("commit:called")
        query, run = results[0].query, results[0].run
        key = query, run
        fence = _fences.pop(key, None)
        if fence is not None and (fence.idle_s > FENCE_KEPT_S or not protocol.is_last_for(fence.found, results)):
            fence.close()
            fence = None
        if fence is None:
            fence = Fence(ledger_of(self._options), query)
        try:
            reached("commit:fenced")
            self._commit(fence, results, batch)
        except BaseException:
            fence.close()
            raise
        if self.is_once:
            fence.close()
            return
        for other in [each for each in _fences if each[0] == query]:
            _fences.pop(other).close()
        for other in list(_fences)[: 1 - FENCES_MAX]:
            _fences.pop(other).close()
        _fences[key] = fence

    def _commit(self, fence: Fence, results: Sequence[TaskResult], batch: int) -> None:
        found = fence.found
        if found is not None and found.decision.batch < batch and found.decision.state is State.DECIDED:
            # Spark goes on only after a commit, so this is a checkpoint that was changed by hand. A decision stays one.
            self.finish(fence, found.decision)
            raise SinkError(
                f"batch {found.decision.batch} of query {found.decision.query} was unfinished: start the query again"
            )
        plan = protocol.plan_commit(found, results, batch, now_ms())
        if isinstance(plan, protocol.Refuse):
            raise SinkError(plan.reason)
        decision = plan.decision
        if isinstance(plan, protocol.Decide) and self._options.two_phase is TwoPhase.AUTO:
            # From here on only this driver, or a sweep, ends them. A driver that died later cannot come too late for its batch.
            decision = replace(decision, transactions=keep_all(self._producer, decision.transactions))
            reached("commit:kept")
        # What is open before a record of ours can be aborted after it: nobody else may decide about it any more.
        orphans = self._orphans(decision)
        if isinstance(plan, protocol.FinishEarlier):
            abort_all(self._producer, plan.aborted)
            if decision.state is State.FINISHED:
                fence.write(replace(decision, time_ms=now_ms()))
        else:
            looks = look_at(self._admin, decision.transactions)
            refusal = protocol.check_open(decision.transactions, looks, decision.query, batch)
            if refusal is not None:
                raise SinkError(refusal.reason)
            reached("commit:checked")
            fence.write(decision)
        reached("decision:written")
        if self.is_once:
            self._finish_once(fence, decision, orphans)
        else:
            if decision.state is State.DECIDED:
                self.finish(fence, decision)
            self._sweep(decision.query, orphans)
        reached("sweep:done")

    def _finish_once(self, fence: Fence, decision: Decision, orphans: Sequence[HeldTransaction]) -> None:
        """Finish a batch write. Once its rows are visible nothing may fail it: the user would write them again."""
        try:
            self._commit_all(fence, decision)
        except KafkaError as error:
            raise SinkError(
                f"the commit of write {decision.query} was interrupted: {error}. It is decided, so its rows become visible: do "
                "not write them again. The driver tries once more; if that fails too: ottla pipeline transactions "
                f"--query {decision.query} --commit --execute"
            ) from error
        try:
            fence.forget()
            reached("finish:written")
            self._sweep(decision.query, orphans)
            self._sweep_late(decision.query)
        except (KafkaError, SinkError) as error:
            logger.warning(
                "write %s is complete, but what attempts of its tasks left open could not be aborted: %s. See ottla pipeline "
                "transactions --query %s",
                decision.query,
                error,
                decision.query,
            )

    def finish(self, fence: Fence, decision: Decision) -> None:
        """Commit the transactions of a decision, and write down that it is done."""
        self._commit_all(fence, decision)
        if self.is_once:
            fence.forget()
        else:
            fence.write(replace(decision, state=State.FINISHED, transactions=(), time_ms=now_ms()))
        reached("finish:written")

    def _commit_all(self, fence: Fence, decision: Decision) -> None:
        aborted = commit_all(self._producer, decision.transactions)
        reached("ending:all")
        if aborted:
            problem = protocol.missing_rows(decision, aborted, len(decision.transactions))
            broken = replace(decision, state=State.BROKEN, problem=problem, time_ms=now_ms())
            fence.write(broken)
            raise SinkError(protocol.broken(broken))

    def abort(self, query: str, run: str, batch: int) -> None:
        """Give a batch up: after the record of it, nobody decides about its transactions any more, and all are aborted."""
        for other in [each for each in _fences if each[0] == query]:
            _fences.pop(other).close()
        fence = Fence(ledger_of(self._options), query)
        try:
            if self.give_up(fence, query, run, batch):
                return
            assert fence.found is not None, "there is a record that must not be replaced"
            decision = fence.found.decision
            if decision.state is State.BROKEN:
                logger.warning("%s", protocol.broken(decision))
            elif not self.is_once:
                logger.warning("batch %d of query %s is decided: it is finished, not aborted, by the next run", batch, query)
            else:
                self.finish(fence, decision)
                logger.warning("write %s is complete although its commit failed: do not write its rows again", query)
        finally:
            fence.close()

    def give_up(self, fence: Fence, query: str, run: str, batch: int) -> bool:
        """Write that the batch is aborted and abort all of the query's open transactions; False if it is decided."""
        found = fence.found
        if found is not None and not protocol.may_give_up(found.decision, batch):
            return False
        decision = Decision(query, batch, run, State.ABORTED, time_ms=now_ms())
        orphans = self._orphans(decision)
        fence.write(decision)
        self._sweep(query, orphans)
        if self.is_once:
            time.sleep(KILL_S)  # Spark does not say when a killed task has ended
            self._sweep_late(query)
            fence.forget()
        return True

    @property
    def _producer(self) -> Producer[Any, Any]:
        return clients.producer(self._options.client_without_transactions)

    def _orphans(self, decision: Decision) -> list[HeldTransaction]:
        """The query's open transactions that a decision does not commit."""
        kept = {each[:3] for each in decision.transactions}
        return [each for each in open_transactions(self._admin, decision.query) if each[:3] not in kept]

    def _sweep_late(self, query: str) -> None:
        """Abort what tasks of a batch write have opened meanwhile, and fence those that are about to."""
        fence_idle(self._options.task_client, idle_ids(self._admin, query))
        self._sweep(query, open_transactions(self._admin, query))

    def _sweep(self, query: str, orphans: Sequence[HeldTransaction]) -> None:
        if orphans:
            logger.info("aborting %d transactions that tasks of query %s left open", len(orphans), query)
            abort_all(self._producer, orphans)


def abort_quietly(driver: Driver, query: str, run: str, batch: int) -> None:
    """Abort a batch after another failure, which is the one that the user must see."""
    try:
        driver.abort(query, run, batch)
    except (KafkaError, SinkError) as error:
        until = f"ottla pipeline transactions --query {query} ends them" if driver.is_once else "the next run"
        logger.warning("transactions of query %s stay open until %s, or until they time out: %s", query, until, error)


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000
