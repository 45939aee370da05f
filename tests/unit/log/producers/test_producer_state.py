"""Producer state: Apache's verdicts, whole batches, transactions, verification, expiry."""

from pathlib import Path

import pytest
from tests.support.logs.batches import T0, make_batch
from tests.support.logs.producer_script import run_script

from ottla.errors import BrokenInvariant, KafkaError
from ottla.errors.codes import ErrorCode
from ottla.log.producers.append_checks import AppendOrigin, CompletedTransaction
from ottla.log.producers.producer_entry import BatchMetadata, ProducerEntry
from ottla.log.producers.producer_state import EndedTransaction, ProducerState
from ottla.records.batch import BatchView
from ottla.records.control import build_end_marker

SCENARIOS = (Path(__file__).parent / "data" / "producer_scenarios.txt").read_text().splitlines()


def data(
    first_offset: int, sequence: int, *, count: int = 1, producer: int = 1, epoch: int = 0, transactional: bool = False
) -> BatchView:
    values = [b"v"] * count
    batch = make_batch(*values, base_offset=first_offset, producer=(producer, epoch, sequence), transactional=transactional)
    return BatchView(batch)


def marker(offset: int, *, commit: bool, producer: int = 1, epoch: int = 0, coordinator_epoch: int = 0) -> BatchView:
    batch = build_end_marker(
        is_commit=commit,
        coordinator_epoch=coordinator_epoch,
        base_offset=offset,
        timestamp_ms=T0,
        producer_id=producer,
        producer_epoch=epoch,
    )
    return BatchView(batch)


def write(
    state: ProducerState, *batches: BatchView, origin: AppendOrigin = AppendOrigin.CLIENT, transaction_version: int = 0
) -> list[EndedTransaction]:
    append = state.begin(origin, transaction_version=transaction_version)
    for batch in batches:
        assert append.add(batch, batch.base_offset) is None
    return state.apply(append, batches[-1].next_offset)


def test_verdicts_are_apaches() -> None:
    """The file holds scripts with the answers of Apache Kafka 4.3.0 (tests/support/java/ProducerOracle.java)."""
    assert run_script(line.split(" => ")[0] for line in SCENARIOS) == SCENARIOS


def test_deciding_changes_nothing() -> None:
    state = ProducerState("t-0")
    write(state, data(0, 0))
    before = repr(state.producers)
    append = state.begin(AppendOrigin.CLIENT)
    append.add(data(1, 1, transactional=True), 1)
    assert repr(state.producers) == before
    assert state.first_unstable_offset is None
    assert state.map_end_offset == 1


def test_duplicate_answers_with_where_the_batch_is() -> None:
    state = ProducerState("t-0")
    for sequence in range(6):
        write(state, data(sequence, sequence))
    append = state.begin(AppendOrigin.CLIENT)
    found = append.add(data(6, 1), 6)
    assert found == BatchMetadata(1, 1, 1, 1, T0)
    with pytest.raises(KafkaError) as refused:
        state.begin(AppendOrigin.CLIENT).add(data(6, 0), 6)
    assert refused.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert "the last one here ends at 5" in str(refused.value)


def test_batches_of_one_append_are_checked_against_each_other() -> None:
    state = ProducerState("t-0")
    write(state, data(0, 0))
    write(state, data(1, 1, count=2), data(3, 3))
    assert state.producers[1].last_sequence == 3
    append = state.begin(AppendOrigin.CLIENT)
    append.add(data(4, 4), 4)
    with pytest.raises(KafkaError):
        append.add(data(5, 6), 5)


def test_log_may_set_the_timestamp() -> None:
    state = ProducerState("t-0")
    append = state.begin(AppendOrigin.CLIENT)
    append.add(data(0, 0), 0, timestamp_ms=77)
    state.apply(append, 1)
    assert state.producers[1].last_timestamp_ms == 77


def test_batches_without_a_producer_are_ignored() -> None:
    state = ProducerState("t-0")
    append = state.begin(AppendOrigin.CLIENT)
    assert append.add(BatchView(make_batch(b"v")), 0) is None
    state.apply(append, 1)
    assert state.is_empty
    state.advance(9)
    assert state.map_end_offset == 9


def test_transaction_from_first_record_to_settled() -> None:
    state = ProducerState("t-0")
    write(state, data(0, 0, transactional=True))
    assert state.last_stable_offset(high_watermark=1) == 0
    assert state.has_ongoing_transaction(1, 0)
    assert not state.has_ongoing_transaction(1, 1)
    ended = write(state, marker(1, commit=False), origin=AppendOrigin.COORDINATOR)
    assert ended == [EndedTransaction(1, 0, 1, True, 2)]
    assert state.first_undecided_offset is None
    assert state.last_stable_offset(high_watermark=1) == 0
    state.on_high_watermark(1)
    assert state.last_stable_offset(high_watermark=1) == 0
    state.on_high_watermark(2)
    assert state.last_stable_offset(high_watermark=2) == 2


def test_last_stable_offset_is_held_by_the_oldest_open_transaction() -> None:
    state = ProducerState("t-0")
    write(state, data(0, 0, producer=1, transactional=True))
    write(state, data(1, 0, producer=2, transactional=True))
    ended = write(state, marker(2, commit=True, producer=1), origin=AppendOrigin.COORDINATOR)
    assert ended[0].last_stable_offset == 1
    state.on_high_watermark(3)
    assert state.last_stable_offset(3) == 1
    assert state.last_stable_offset(3, log_start_offset=2) == 2


def test_transaction_may_begin_and_end_in_one_append() -> None:
    state = ProducerState("t-0")
    append = state.begin(AppendOrigin.REPLICATION)
    for batch in (data(0, 0, transactional=True), marker(1, commit=True), data(2, 1, transactional=True)):
        append.add(batch, batch.base_offset)
    assert append.completed == [CompletedTransaction(1, 0, 1, False)]
    assert [ended.last_stable_offset for ended in state.apply(append, 3)] == [2]
    assert state.first_undecided_offset == 2


def test_empty_control_batch_is_what_compaction_leaves() -> None:
    batch = marker(1, commit=True)
    batch.count = 0
    state = ProducerState("t-0")
    write(state, data(0, 0, transactional=True))
    assert write(state, batch, origin=AppendOrigin.REPLICATION) == []
    assert state.first_undecided_offset == 0


def test_marker_without_its_transaction_breaks_an_invariant() -> None:
    state = ProducerState("t-0")
    append = state.begin(AppendOrigin.REPLICATION)
    append.completed.append(CompletedTransaction(1, 0, 1, True))
    with pytest.raises(BrokenInvariant, match="never begun"):
        state.apply(append, 2)


def test_transactional_batch_needs_its_verification() -> None:
    state = ProducerState("t-0")
    batch = data(0, 0, transactional=True)
    with pytest.raises(KafkaError) as refused:
        state.begin(AppendOrigin.CLIENT, verify=True).add(batch, 0)
    assert refused.value.code == ErrorCode.INVALID_TXN_STATE

    verification = state.begin_verification(1, 0, 0, supports_epoch_bump=True, now_ms=5)
    assert verification is state.verification(1)
    assert verification is state.begin_verification(1, 3, 0, supports_epoch_bump=True, now_ms=6)
    append = state.begin(AppendOrigin.CLIENT, verify=True, verified_by=verification)
    append.add(batch, 0)
    state.apply(append, 1)
    assert state.verification(1) is None
    assert state.begin_verification(1, 1, 0, supports_epoch_bump=True, now_ms=7) is None
    append = state.begin(AppendOrigin.CLIENT, verify=True)
    append.add(data(1, 1, transactional=True), 1)


def test_verification_of_an_earlier_transaction_does_not_count() -> None:
    state = ProducerState("t-0")
    old = state.begin_verification(1, 0, 0, supports_epoch_bump=False, now_ms=5)
    write(state, marker(0, commit=False), origin=AppendOrigin.COORDINATOR)
    new = state.begin_verification(1, 0, 0, supports_epoch_bump=False, now_ms=6)
    assert new is not old
    with pytest.raises(KafkaError):
        state.begin(AppendOrigin.CLIENT, verify=True, verified_by=old).add(data(1, 0, transactional=True), 1)


def test_verification_in_an_older_epoch_is_refused() -> None:
    state = ProducerState("t-0")
    write(state, data(0, 0, epoch=2))
    for attempt in (
        lambda: state.begin_verification(1, 0, 1, supports_epoch_bump=True, now_ms=5),
        lambda: state.begin(AppendOrigin.CLIENT).add(data(1, 0, epoch=1, transactional=True), 1),
    ):
        with pytest.raises(KafkaError) as refused:
            attempt()
        assert refused.value.code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_idle_producers_expire_but_not_within_a_transaction() -> None:
    state = ProducerState("t-0")
    write(state, data(0, 0, producer=1))
    write(state, data(1, 0, producer=2, transactional=True))
    state.begin_verification(3, 0, 0, supports_epoch_bump=False, now_ms=T0)
    assert state.remove_expired(T0 + 99, expiration_ms=100) == 0
    assert state.remove_expired(T0 + 100, expiration_ms=100) == 1
    assert list(state.producers) == [2]
    assert state.verification(3) is None


def test_late_transaction() -> None:
    state = ProducerState("t-0")
    assert not state.has_late_transaction(T0, 60_000)
    write(state, data(0, 0, transactional=True))
    assert not state.has_late_transaction(T0 + 360_000, 60_000)
    assert state.has_late_transaction(T0 + 360_001, 60_000)


def test_log_start_passes_ended_transactions_and_keeps_producers() -> None:
    state = ProducerState("t-0")
    write(state, data(0, 0, transactional=True))
    write(state, marker(1, commit=True), origin=AppendOrigin.COORDINATOR)
    state.on_log_start(5)
    assert state.first_unstable_offset is None
    assert state.map_end_offset == 5
    assert 1 in state.producers


def test_load_replaces_all_state_without_expired_producers() -> None:
    state = ProducerState("t-0")
    write(state, data(0, 0, producer=9, transactional=True))
    entries = [
        ProducerEntry(3, 0, last_timestamp_ms=T0, transaction_first_offset=8),
        ProducerEntry(2, 0, last_timestamp_ms=T0, transaction_first_offset=4),
        ProducerEntry(1, 0, last_timestamp_ms=T0 - 100),
    ]
    state.load(entries, 20, now_ms=T0, expiration_ms=100)
    assert sorted(state.producers) == [2, 3]
    assert (state.map_end_offset, state.first_undecided_offset, state.first_unstable_offset) == (20, 4, 4)
    state.reset(7)
    assert state.is_empty
    assert (state.map_end_offset, state.first_unstable_offset) == (7, None)
