"""The simulator finds broken clients, too: each that is broken on purpose is detected within a few seeds of its scene."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.client.consumer.offset_calls import OffsetCalls
from ottla.client_core.consumer.fetched import Fetched
from ottla.client_core.machine import Request
from ottla.client_core.producer.idempotence import Idempotence
from ottla.client_core.producer.transaction_requests import Kind
from ottla.client_core.producer.transactions import TransactionManager
from ottla.errors import KafkaError
from ottla.sim.plan import SCENES, scene_of
from ottla.sim.run import RunFailed, run_seed

SEEDS_MAX = 60


def an_ending_without_an_answer_counts_as_done(patch: pytest.MonkeyPatch) -> None:
    failed = TransactionManager.failed

    def end(manager: TransactionManager, request: Request, error: KafkaError, now_ms: int) -> None:
        if getattr(request.context, "kind", None) is Kind.END and not error.is_unsent:
            manager._in_flight = None
            manager._ended()
        else:
            failed(manager, request, error, now_ms)

    patch.setattr(TransactionManager, "failed", end)


def an_ending_without_an_answer_is_repeated_later(patch: pytest.MonkeyPatch) -> None:
    """The program goes on, and the EndTxn is sent again: in the epoch of the next transaction, if that has the same."""
    failed, step = TransactionManager.failed, TransactionManager.step
    late: dict[TransactionManager, Request] = {}

    def put_off(manager: TransactionManager, request: Request, error: KafkaError, now_ms: int) -> None:
        if getattr(request.context, "kind", None) is Kind.END and not error.is_unsent:
            manager._in_flight = None
            late[manager] = request
            manager._ended()
        else:
            failed(manager, request, error, now_ms)

    def step_late(manager: TransactionManager, now_ms: int) -> list[Request]:
        found = step(manager, now_ms)
        node = manager.coordinator.node()
        if manager in late and manager._in_flight is None and manager._partitions and node is not None:
            again = late.pop(manager)
            manager._in_flight = Request(again.message, node, context=again.context, version_max=again.version_max)
            found.append(manager._in_flight)
        return found

    patch.setattr(TransactionManager, "failed", put_off)
    patch.setattr(TransactionManager, "step", step_late)


def retries_get_new_sequences(patch: pytest.MonkeyPatch) -> None:
    assign = Idempotence.assign

    def assign_always(idempotence: Idempotence, batch: Any) -> None:
        if batch.has_sequence and not idempotence.is_transactional:
            entry = idempotence._entry(batch.key)
            batch.set_producer(entry.producer, entry.next)
            entry.next += batch.count
        else:
            assign(idempotence, batch)

    patch.setattr(Idempotence, "assign", assign_always)


def consumers_skip_records(patch: pytest.MonkeyPatch) -> None:
    take = Fetched.take

    def take_less(fetched: Fetched, records: Any, limit: int, *deserializers: Any) -> None:
        before = len(records)
        take(fetched, records, limit, *deserializers)
        if len(records) > before and records[-1].offset % 7 == 3:
            del records[-1]

    patch.setattr(Fetched, "take", take_less)


def commits_run_ahead(patch: pytest.MonkeyPatch) -> None:
    commit = OffsetCalls.commit_automatically

    def commit_more(calls: OffsetCalls, offsets: Any) -> None:
        commit(calls, {each: value._replace(offset=value.offset + 3) for each, value in offsets.items()})

    patch.setattr(OffsetCalls, "commit_automatically", commit_more)


MUTATIONS = {
    an_ending_without_an_answer_counts_as_done: (
        "transactions",
        r"was committed and acknowledged, but|made of|whose commit was never|went back",
    ),
    an_ending_without_an_answer_is_repeated_later: ("transactions", r"the program has asked|whose commit was never|are gone"),
    retries_get_new_sequences: ("logs", r"of the idempotent p\d comes after|got [A-Z_]+|could not deliver"),
    consumers_skip_records: ("logs", r"went on behind offset"),
    commits_run_ahead: ("groups", r"no member got the record"),
}


def run_seeds(scene: str, count: int) -> None:
    for seed in [seed for seed in range(count * len(SCENES)) if scene_of(seed) == scene]:
        run_seed(seed)


def check(mutation: Callable[[pytest.MonkeyPatch], None], patch: pytest.MonkeyPatch) -> None:
    scene, found = MUTATIONS[mutation]
    mutation(patch)
    with pytest.raises(RunFailed, match=found):
        run_seeds(scene, SEEDS_MAX)


def test_an_ending_of_an_earlier_transaction_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    check(an_ending_without_an_answer_is_repeated_later, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_broken_client_is_detected(mutation: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    check(mutation, monkeypatch)
