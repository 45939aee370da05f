"""Runs of one query race in a small model of the cluster: steps interleave at random, runs stall, die and wake up again.

The plans are the sink's own. The model has what Kafka gives: a fence that the last one to open it holds, transactions that are
aborted when their id is initialised again, and the order of records. A stalled run is a zombie: it goes on after others have
taken over. After every race a last run finishes alone.

With two-phase commit a driver takes the transactions of its batch over before it decides. Nothing but a driver or the
operator's command ends those, and it must leave none open.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace
from random import Random

import pytest

from ottla.spark.sink.protocol import (
    NO_RECORD,
    Decide,
    Decision,
    HeldTransaction,
    IdPool,
    Look,
    Refuse,
    Skip,
    State,
    StoredDecision,
    TaskResult,
    check_open,
    is_given_up,
    may_give_up,
    plan_commit,
    plan_task,
)

TASKS = 2
BATCHES = 3
RACES = 1500


class Stopped(Exception):
    """A run has failed: Spark starts another."""


class Cluster:
    """One query's records and transactions, and what Spark has in its checkpoint."""

    def __init__(self, is_two_phase: bool) -> None:
        self.is_two_phase = is_two_phase
        self.found: StoredDecision | None = None
        self.fence = 0
        self.states: dict[str, tuple[str, int]] = {}
        """State and epoch by transactional id."""
        self.open_rows: dict[str, tuple[int, int]] = {}
        self.visible: list[tuple[int, int]] = []
        self.done = -1
        """The last batch in Spark's commit log."""

    def begin(self, name: str, row: tuple[int, int]) -> HeldTransaction:
        epoch = self.states.get(name, ("", -1))[1] + 1
        self.states[name] = "Ongoing", epoch
        self.open_rows[name] = row
        return HeldTransaction(name, 1, epoch, row[1], 1)

    def commit(self, held: HeldTransaction) -> bool:
        state, epoch = self.states[held.transactional_id]
        if epoch != held.epoch or state == "CompleteAbort":
            return False
        if state == "Ongoing":
            self.visible.append(self.open_rows.pop(held.transactional_id))
            self.states[held.transactional_id] = "CompleteCommit", epoch
        return True

    def abort(self, held: HeldTransaction) -> None:
        name, epoch = held.transactional_id, held.epoch
        if self.states[name] == ("Ongoing", epoch):
            self.open_rows.pop(name)
            self.states[name] = "CompleteAbort", epoch + 1

    def keep(self, held: HeldTransaction) -> HeldTransaction:
        """The transaction in its next epoch, if it is open; else it stays as it is."""
        name, epoch = held.transactional_id, held.epoch
        if self.states[name] != ("Ongoing", epoch):
            return held
        self.states[name] = "Ongoing", epoch + 1
        return held._replace(epoch=epoch + 1)

    def opened(self, decision: Decision) -> list[HeldTransaction]:
        kept = {each[:3] for each in decision.transactions}
        found = [HeldTransaction(name, 1, self.states[name][1], -1, 0) for name in self.open_rows]
        return [each for each in found if each[:3] not in kept]

    def write(self, fence: int, decision: Decision) -> None:
        if fence != self.fence:
            raise Stopped("fenced")
        self.found = StoredDecision(decision, 0 if self.found is None else self.found.offset + 1)


def run(cluster: Cluster, name: str) -> Iterator[None]:
    """One run of the query, as `writers.py` and `commit.py` do it; each `yield` is a point where others may go first."""
    pools = [IdPool(f"{name}-{worker}") for worker in range(TASKS)]
    for batch in range(cluster.done + 1, BATCHES):
        results: list[TaskResult] = []
        for task in range(TASKS):
            result = yield from run_task(cluster, pools[task], name, batch, task)
            results += [result]
        try:
            yield from commit(cluster, name, batch, results)
        except Stopped:
            yield from give_up(cluster, name, batch)
            raise
        cluster.done = max(cluster.done, batch)
        yield


def run_task(cluster: Cluster, pool: IdPool, name: str, batch: int, task: int) -> Generator[None, None, TaskResult]:
    found = cluster.found
    seen = NO_RECORD if found is None else found.offset
    yield
    plan = plan_task(found, "q", batch)
    if isinstance(plan, Refuse):
        raise Stopped(plan.reason)
    if isinstance(plan, Skip):
        return TaskResult("q", name, batch, task, 1, None, seen, is_skipped=True)
    held = cluster.begin(pool.take("q", batch), (batch, task))
    yield
    if is_given_up(cluster.found, seen, batch):
        cluster.abort(held)
        raise Stopped("given up")
    yield
    return TaskResult("q", name, batch, task, 1, held, seen)


def commit(cluster: Cluster, name: str, batch: int, results: list[TaskResult]) -> Iterator[None]:
    cluster.fence += 1
    fence = cluster.fence
    found = cluster.found
    yield
    plan = plan_commit(found, results, batch, 0)
    if isinstance(plan, Refuse):
        raise Stopped(plan.reason)
    decision = plan.decision
    if isinstance(plan, Decide) and cluster.is_two_phase:
        kept = []
        for each in decision.transactions:
            kept.append(cluster.keep(each))
            yield
        decision = replace(decision, transactions=tuple(kept))
    orphans = cluster.opened(decision)
    yield
    if isinstance(plan, Decide):
        looks: dict[str, Look | None] = {
            each.transactional_id: Look(cluster.states[each.transactional_id][0], 1, cluster.states[each.transactional_id][1])
            for each in decision.transactions
        }
        if check_open(decision.transactions, looks, "q", batch) is not None:
            raise Stopped("not open")
        yield
        cluster.write(fence, decision)
    else:
        for each in plan.aborted:
            cluster.abort(each)
            yield
        if decision.state is State.FINISHED:
            cluster.write(fence, decision)
    if decision.state is State.DECIDED:
        yield
        for held in decision.transactions:
            assert cluster.commit(held), f"{held} of a decided batch was aborted"
            yield
        cluster.write(fence, Decision("q", batch, name, State.FINISHED))
    yield
    yield from sweep(cluster, orphans)


def give_up(cluster: Cluster, name: str, batch: int) -> Iterator[None]:
    cluster.fence += 1
    fence = cluster.fence
    found = cluster.found
    yield
    if found is not None and not may_give_up(found.decision, batch):
        return
    decision = Decision("q", batch, name, State.ABORTED)
    orphans = cluster.opened(decision)
    yield
    cluster.write(fence, decision)
    yield
    yield from sweep(cluster, orphans)


def sweep(cluster: Cluster, orphans: list[HeldTransaction]) -> Iterator[None]:
    for each in orphans:
        yield
        cluster.abort(each)


@pytest.mark.parametrize("is_two_phase", [False, True])
@pytest.mark.parametrize("first_seed", range(0, RACES, RACES // 3))
def test_racing_runs_write_every_batch_once(first_seed: int, is_two_phase: bool) -> None:
    for seed in range(first_seed, first_seed + RACES // 3):
        random = Random(seed)
        cluster = Cluster(is_two_phase)
        runs: list[Iterator[None]] = []
        for number in range(200):
            if not runs or (len(runs) < 3 and random.random() < 0.05):
                runs.append(run(cluster, f"run{number}"))
            chosen = random.choice(runs)
            for _ in range(random.choice((1, 1, 2, 8))):
                try:
                    next(chosen)
                except (StopIteration, Stopped):
                    runs.remove(chosen)
                    break
            if runs and random.random() < 0.02:
                runs.remove(random.choice(runs))  # killed
        for _ in range(10):  # the others are gone; Spark starts the query until it succeeds
            if cluster.done == BATCHES - 1:
                break
            try:
                for _step in run(cluster, f"last{_}"):
                    pass
            except Stopped:
                continue
        assert sorted(cluster.visible) == [(batch, task) for batch in range(BATCHES) for task in range(TASKS)], f"seed {seed}"
        for _step in give_up(cluster, "operator", BATCHES):
            pass
        assert not cluster.open_rows, f"seed {seed}"
