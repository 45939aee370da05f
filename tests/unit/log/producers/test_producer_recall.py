"""Recall: after a start the last five batches of every producer are known again."""

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st
from tests.support.logs.batches import make_batch

from ottla.log.producers.append_checks import AppendOrigin
from ottla.log.producers.producer_recovery import Recalled, recall_batches
from ottla.log.producers.producer_snapshot import decode_snapshot, encode_snapshot
from ottla.log.producers.producer_state import ProducerState
from ottla.records.batch import BatchView


def written(rows: list[tuple[int, int, int]]) -> tuple[ProducerState, list[BatchView]]:
    """State and log after rows of (producer, epoch bump, count)."""
    state, log, following = ProducerState("t-0"), [], {}
    for producer, bump, count in rows:
        epoch, sequence = following.get(producer, (0, 0))
        if bump:
            epoch, sequence = epoch + 1, 0
        batch = BatchView(make_batch(*[b"v"] * count, base_offset=state.map_end_offset, producer=(producer, epoch, sequence)))
        following[producer] = (epoch, sequence + count)
        append = state.begin(AppendOrigin.REPLICATION)
        append.add(batch, batch.base_offset)
        state.apply(append, batch.next_offset)
        log.append(batch)
    return state, log


def restarted(state: ProducerState) -> ProducerState:
    after = ProducerState("t-0")
    after.load(decode_snapshot("/f", encode_snapshot(state.producers.values())), state.map_end_offset, 0, 2**62)
    return after


@given(st.lists(st.tuples(st.integers(1, 3), st.sampled_from([0, 0, 0, 1]), st.integers(1, 4)), max_size=30))
def test_recall_restores_the_batches_known_before(rows: list[tuple[int, int, int]]) -> None:
    state, log = written(rows)
    after = restarted(state)
    recalled = recall_batches(after, reversed(log))
    assert repr(after.producers) == repr(state.producers)
    assert recalled.producers_incomplete == 0


def test_a_snapshot_alone_has_one_batch() -> None:
    state, _ = written([(1, 0, 2)] * 7)
    assert len(restarted(state).producers[1].batches) == 1


def test_scan_ends_once_every_producer_has_five() -> None:
    state, log = written([(1, 0, 1)] * 1000)
    after = restarted(state)
    assert recall_batches(after, reversed(log)) == Recalled(batches_scanned=5, batches_found=4, producers_incomplete=0)


def test_scan_ends_at_the_first_sequence() -> None:
    state, log = written([(2, 0, 1)] * 50 + [(1, 0, 1)] * 2)
    del log[0]
    after = restarted(state)
    assert recall_batches(after, reversed(log)).batches_scanned == 7


def test_scan_is_bounded_and_says_so() -> None:
    state, log = written([(1, 0, 1)] * 5 + [(2, 0, 1)] * 100)
    after = restarted(state)
    recalled = recall_batches(after, reversed(log), batches_max=20)
    assert recalled == Recalled(batches_scanned=20, batches_found=4, producers_incomplete=1)
    assert len(after.producers[1].batches) == 1
    assert len(after.producers[2].batches) == 5


def test_nothing_is_read_if_no_producer_needs_it() -> None:
    def unread() -> Iterator[BatchView]:
        raise AssertionError("read")
        yield

    assert recall_batches(ProducerState("t-0"), unread()) == Recalled(0, 0, 0)
    state, _ = written([(1, 0, 3)])
    assert recall_batches(restarted(state), unread()) == Recalled(0, 0, 0)


def test_batches_of_an_earlier_epoch_end_the_search() -> None:
    state, log = written([(1, 0, 1)] * 5 + [(1, 1, 1), (1, 0, 1)])
    log[5].producer_epoch = 0  # as if compaction had removed the first batch of the epoch
    after = restarted(state)
    recalled = recall_batches(after, reversed(log))
    assert (recalled.batches_found, recalled.producers_incomplete) == (0, 0)
