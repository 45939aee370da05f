"""Plans of tasks and of the driver, case by case. `test_protocol_races.py` runs drivers against each other."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.spark.sink import protocol
from ottla.spark.sink.protocol import (
    NO_RECORD,
    Decide,
    Decision,
    FinishEarlier,
    HeldTransaction,
    IdPool,
    Look,
    Refuse,
    SinkId,
    Skip,
    State,
    StoredDecision,
    TaskResult,
    UnknownDecision,
    Write,
    check_open,
    decode,
    driver_id,
    encode,
    is_given_up,
    may_give_up,
    missing_rows,
    parse_id,
    plan_commit,
    plan_task,
    query_prefix,
    task_id,
)

HELD = HeldTransaction("ottla-sink.q.w.0", 4000, 3, 0, 100)
OTHER = HeldTransaction("ottla-sink.q.w.1", 4001, 0, 1, 50)
RESULT = TaskResult("q", "run1", 7, 0, 100, HELD, NO_RECORD)


def found(batch: int, state: State, run: str = "run0", offset: int = 10) -> StoredDecision:
    return StoredDecision(Decision("q", batch, run, state, (OTHER,), problem="50 rows are missing"), offset)


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (None, Write),
        (found(6, State.FINISHED), Write),
        (found(6, State.DECIDED), Write),
        (found(7, State.ABORTED), Write),
        (found(7, State.DECIDED), Skip),
        (found(7, State.FINISHED), Skip),
        (found(7, State.BROKEN), Refuse),
        (found(8, State.DECIDED), Refuse),
    ],
)
def test_a_task_writes_what_is_not_decided(last: StoredDecision | None, expected: type) -> None:
    assert isinstance(plan_task(last, "q", 7), expected)


def test_a_task_stops_if_its_batch_was_given_up_meanwhile() -> None:
    assert is_given_up(found(7, State.ABORTED, offset=11), 10, 7)
    assert not is_given_up(found(7, State.ABORTED, offset=10), 10, 7)  # an earlier attempt's, seen before
    assert not is_given_up(found(6, State.FINISHED, offset=11), 10, 7)
    assert not is_given_up(None, NO_RECORD, 7)


def test_the_first_batch_of_a_query_is_decided() -> None:
    plan = plan_commit(None, [RESULT], 7, 123)
    assert plan == Decide(Decision("q", 7, "run1", State.DECIDED, (HELD,), 123))


def test_a_batch_after_a_record_that_all_tasks_saw_is_decided() -> None:
    seen = replace(RESULT, seen=10)
    assert isinstance(plan_commit(found(6, State.FINISHED), [seen], 7, 0), Decide)
    assert isinstance(plan_commit(found(7, State.ABORTED), [seen, seen], 7, 0), Decide)
    assert isinstance(plan_commit(found(7, State.ABORTED, offset=12), [seen, seen], 7, 0), Refuse)
    assert isinstance(plan_commit(found(7, State.ABORTED), [seen, RESULT], 7, 0), Refuse)


@pytest.mark.parametrize(
    ("batch", "state", "expected"),
    [
        (6, State.FINISHED, True),
        (6, State.ABORTED, True),
        (7, State.ABORTED, True),
        (6, State.DECIDED, False),
        (7, State.DECIDED, False),
        (7, State.FINISHED, False),
        (7, State.BROKEN, False),
        (8, State.ABORTED, False),
    ],
)
def test_an_aborted_batch_never_replaces_a_decision(batch: int, state: State, expected: bool) -> None:
    assert may_give_up(found(batch, state).decision, 7) == expected


def test_a_replay_finishes_what_was_decided() -> None:
    skipped = replace(RESULT, transaction=None, is_skipped=True)
    last = found(7, State.DECIDED)
    assert plan_commit(last, [skipped], 7, 0) == FinishEarlier(last.decision, ())
    assert plan_commit(last, [RESULT], 7, 0) == FinishEarlier(last.decision, (HELD,))


def test_a_run_that_was_overtaken_is_refused() -> None:
    plan = plan_commit(found(8, State.FINISHED), [RESULT], 7, 0)
    assert isinstance(plan, Refuse)
    assert "query q writes batch 7, but has committed batch 8 before" in plan.reason


def test_a_broken_batch_stays_an_error() -> None:
    plan = plan_commit(found(7, State.BROKEN), [RESULT], 7, 0)
    assert isinstance(plan, Refuse)
    assert "50 rows are missing" in plan.reason
    assert "ottla pipeline transactions --query q" in plan.reason


def test_a_skip_without_a_decision_is_refused() -> None:
    assert isinstance(plan_commit(None, [replace(RESULT, is_skipped=True)], 7, 0), Refuse)


def test_nothing_is_decided_unless_every_transaction_is_open() -> None:
    looks: dict[str, Look | None] = {
        HELD.transactional_id: Look("Ongoing", 4000, 3),
        OTHER.transactional_id: Look("Ongoing", 4001, 0),
    }
    assert check_open([HELD, OTHER], looks, "q", 7) is None
    for bad in (None, Look("CompleteAbort", 4001, 1), Look("Ongoing", 4001, 1)):
        refusal = check_open([HELD, OTHER], looks | {OTHER.transactional_id: bad}, "q", 7)
        assert refusal is not None
        assert "1 of its 2 transactions ended" in refusal.reason
        assert "ottla-sink.q.w.1 of task 1" in refusal.reason


def test_missing_rows_are_counted() -> None:
    text = missing_rows(Decision("q", 7, "r", State.DECIDED, (HELD, OTHER)), [OTHER], 2)
    assert text.startswith("50 rows are missing, because 1 of its 2 transactions")


NUMBERS = st.integers(0, 2**62)
DECISION_HELD = st.builds(HeldTransaction, st.text(max_size=20), NUMBERS, st.integers(0, 32767), NUMBERS, NUMBERS)
DECISIONS = st.builds(
    Decision,
    st.just("q"),
    NUMBERS,
    st.text(max_size=10),
    st.sampled_from(State),
    st.lists(DECISION_HELD, max_size=3).map(tuple),
    NUMBERS,
    st.text(max_size=10),
)


@given(DECISIONS)
def test_a_decision_is_read_as_it_was_written(decision: Decision) -> None:
    assert decode("q", encode(decision)) == decision


@given(st.binary(max_size=40))
def test_other_bytes_are_a_typed_error(value: bytes) -> None:
    with pytest.raises(UnknownDecision, match="query q"):
        decode("q", value)


def test_a_newer_version_is_named() -> None:
    with pytest.raises(UnknownDecision, match="version 2: a newer ottla wrote it"):
        decode("q", json.dumps({"version": 2}).encode())


QUERY = "9beb7911-a21b-41be-a3c6-b0cbcb76d6e5"


def test_ids_are_read_as_they_were_written() -> None:
    assert parse_id(task_id(QUERY, "50285e9f1a88", 3)) == SinkId(QUERY, "50285e9f1a88", 3)
    assert parse_id(driver_id(QUERY)) == SinkId(QUERY, "driver", 0)
    assert all(each.startswith(query_prefix(QUERY)) for each in (task_id(QUERY, "w", 0), driver_id(QUERY)))


def test_ids_of_others_are_no_sink_ids() -> None:
    assert [parse_id(each) for each in ("payments-1", "ottla-sink.", "ottla-sink.a.b.c", "ottla-sink.a.b.1.2")] == [None] * 4


def test_an_id_is_used_again_only_by_a_later_batch() -> None:
    pool = IdPool("w")
    first = [pool.take(QUERY, 7) for _ in range(2)]
    assert first == [task_id(QUERY, "w", 0), task_id(QUERY, "w", 1)]
    # A replay of batch 7, or a late attempt of it, must not touch what batch 7 may have decided.
    assert pool.take(QUERY, 7) == task_id(QUERY, "w", 2)
    assert pool.take(QUERY, 6) == task_id(QUERY, "w", 3)
    assert sorted(pool.take(QUERY, 8) for _ in range(4)) == [task_id(QUERY, "w", number) for number in range(4)]
    assert pool.take("another", 0) == task_id("another", "w", 0)


def test_forgotten_ids_are_not_made_again() -> None:
    pool = IdPool("w")
    made = {pool.take(f"query{number}", 0) for number in range(protocol.QUERIES_MAX + 1)}
    made |= {pool.take(f"query{number}", 0) for number in range(protocol.QUERIES_MAX)}
    assert len(made) == 2 * protocol.QUERIES_MAX + 1


def test_two_workers_share_no_id() -> None:
    assert IdPool().take(QUERY, 0) != IdPool().take(QUERY, 0)
