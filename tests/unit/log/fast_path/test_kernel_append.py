"""The fast path into a log has the same outcome as the general one, in both variants of its kernels."""

import json
import os
import subprocess
import sys
from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.logs.batches import make_batch
from tests.support.logs.partition_logs import LogOnDisk
from tests.unit.log.fast_path.append_story import CONFIGS, Story, tell

from ottla.config.topic import LogConfig
from ottla.log.fast_path import kernel_append
from ottla.log.fast_path.kernels import FastAppend, LogTail
from ottla.log.partition_log import PartitionLog
from ottla.log.producers.producer_entry import BATCHES_REMEMBERED, BatchMetadata
from ottla.records.control import build_end_marker
from ottla.records.decline import Decline
from ottla.records.kernels import PURE_ASKED, is_compiled, load_variant

SEEDS = 8 * len(CONFIGS)


def decline(log: PartitionLog, *_: object) -> FastAppend:
    return log.declined(Decline.HEADER)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_fast_path_and_general_path_have_the_same_outcome(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    fast = tell(seed)
    monkeypatch.setattr(PartitionLog, "check_fast", decline)
    monkeypatch.setattr(PartitionLog, "append_marker", lambda *_: -1)
    monkeypatch.setattr(PartitionLog, "append_followed", lambda *_: -1)
    assert tell(seed) == fast


def test_followers_appends_take_the_fast_path() -> None:
    env = LogOnDisk(LogConfig())
    now_ms = env.clock.now_ms()

    def batch(offset: int, *values: bytes, sequence: int | None = None, epoch: int = 0) -> bytearray:
        producer = None if sequence is None else (7, 0, sequence)
        return make_batch(*values, base_offset=offset, leader_epoch=epoch, producer=producer)

    assert env.log.append_followed(bytes(batch(0, b"a")), 0, now_ms) == -1, "the log does not know the epoch yet"
    assert env.log.append_as_follower(bytes(batch(0, b"a", b"b", sequence=0)), 0).last_offset == 1
    two = bytes(batch(2, b"c", sequence=2) + batch(3, b"d", sequence=3))
    assert env.log.append_followed(two, 0, now_ms) == 2
    assert env.log.producers.producers[7].batches.follows(4)
    good, damaged = batch(4, b"e"), batch(4, b"e")
    damaged[-2] ^= 1
    refused = [good[:-1], good + good[:40], damaged, batch(3, b"e"), batch(4, b"e", epoch=1), batch(4, b"e", sequence=9)]
    for data in [*refused, batch(4, b"e", sequence=4) + batch(5, b"f", sequence=4), good + good]:
        assert env.log.append_followed(bytes(data), 0, now_ms) == -1
    assert (env.log.log_end_offset, env.offsets()) == (4, [0, 1, 2, 3])
    assert env.log.append_followed(memoryview(good), 0, now_ms) == 4
    assert env.offsets() == [0, 1, 2, 3, 4]


@pytest.mark.skipif(not is_compiled(kernel_append), reason="the kernels are not compiled in this install")
def test_both_variants_tell_the_same_stories() -> None:
    count = 3 * len(CONFIGS)
    asked = "0" if PURE_ASKED else "1"
    other = subprocess.run(
        [sys.executable, "-m", "tests.unit.log.fast_path.append_story", str(count)],
        env={**os.environ, "OTTLA_PURE": asked},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(other.stdout) == [tell(seed) for seed in range(count)]


STEPS = st.one_of(
    st.tuples(st.just("append"), st.integers(0, 9), st.integers(1, 4)),
    st.tuples(st.just("appendleft"), st.integers(0, 9), st.integers(1, 4)),
    st.tuples(st.just("clear"), st.just(0), st.just(0)),
)


@pytest.mark.parametrize("is_pure", [True, False])
@settings(deadline=None)
@given(steps=st.lists(STEPS, max_size=20))
def test_recent_batches_are_the_last_five(is_pure: bool, steps: list[tuple[str, int, int]]) -> None:
    variant = load_variant("kernel_producers", pure=is_pure, room="log.fast_path")
    if variant is None:
        pytest.skip("the kernels are not compiled in this install")
    recent = variant.RecentBatches()
    model: deque[tuple[int, ...]] = deque(maxlen=BATCHES_REMEMBERED)
    for number, (step, first, count) in enumerate(steps):
        batch = BatchMetadata((2**31 - 5 + first) % 2**31, (2**31 - 5 + first + count) % 2**31, number, number + count, number)
        if step == "clear":
            recent.clear()
            model.clear()
        elif step == "append" or len(model) < BATCHES_REMEMBERED:
            getattr(recent, step)(batch)
            getattr(model, step)(batch)
        assert (len(recent), bool(recent), list(recent)) == (len(model), bool(model), list(model))
        if model:
            assert (recent[0], recent[-1]) == (model[0], model[-1])
        for sequence in (2**31 - 1, 0, 1, 2, 3, 4):
            is_next = bool(model) and (model[-1][1] + 1) % 2**31 == sequence and all(one[0] != sequence for one in model)
            assert recent.follows(sequence) == is_next
    with pytest.raises(IndexError):
        recent[len(model)]


def test_most_batches_take_the_fast_path(monkeypatch: pytest.MonkeyPatch) -> None:
    fast: list[bool] = []

    def check_fast(log: PartitionLog, *arguments: object) -> FastAppend:
        append = LogTail.check_fast(log, *arguments)  # type: ignore[arg-type]  # handed on as they came
        fast.append(append.decline == Decline.NO)
        return append

    def append_marker(log: PartitionLog, *arguments: object) -> int:
        offset = LogTail.append_marker(log, *arguments)  # type: ignore[arg-type]  # handed on as they came
        fast.append(offset >= 0)
        return offset

    monkeypatch.setattr(PartitionLog, "check_fast", check_fast)
    monkeypatch.setattr(PartitionLog, "append_marker", append_marker)
    appended = 0
    for seed in range(1, SEEDS, len(CONFIGS)):
        story = Story(seed)
        story.tell()
        appended += sum(len(outcome) > 2 and outcome[6] > 0 for outcome in story.outcomes)
    assert sum(fast) > 0.5 * appended


@pytest.mark.parametrize("version", [0, 2])
def test_transactions_take_the_fast_path(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    env = LogOnDisk(LogConfig())
    log, epoch, sequence = env.log, 0, 0
    for turn in range(3):
        if turn == 1:  # the first makes the producer known
            monkeypatch.setattr("ottla.log.append._append_valid", lambda *_: pytest.fail("the general path"))
        proof = log.producers.begin_verification(7, sequence, epoch, version == 2, 0)
        assert proof is not None
        batch = make_batch(b"1", b"2", timestamp=log.clock.now_ms(), producer=(7, epoch, sequence), transactional=True)
        log.append_as_leader(batch, 0, verified_by=proof)
        assert log.producers.has_ongoing_transaction(7, epoch)
        assert log.producers.verification(7) is None
        sequence += 2
        if version == 2:
            epoch, sequence = epoch + 1, 0
        now_ms = log.clock.now_ms()
        marker = build_end_marker(is_commit=True, producer_id=7, producer_epoch=epoch, coordinator_epoch=1, timestamp_ms=now_ms)
        assert log.append_marker(marker, 7, epoch, 1, version, 0, now_ms) == 3 * turn + 2
        assert log.producers.first_undecided_offset is None
        assert log.producers.first_unstable_offset == 3 * turn
        log.increment_high_watermark(log.log_end_offset)
        assert log.producers.first_unstable_offset is None
    env.close()
