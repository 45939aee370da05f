"""Moving a partition to another log directory: no record is lost, also with appends, deletions and failures during the move."""

import asyncio
from dataclasses import replace

import pytest
from tests.support.logs.batches import T0, make_batch, records_of
from tests.support.logs.log_directories import SMALL, NodeStorage
from tests.support.logs.partition_logs import run

from ottla.errors import KafkaError
from ottla.ids import TopicPartition
from ottla.log.directories.folder_deletion import PartitionGone
from ottla.log.directories.log_directories import LogDirectories
from ottla.log.directories.relocation import Relocation, begin, found_at_start
from ottla.log.partition_log import PartitionLog
from ottla.log.producers.append_checks import AppendOrigin
from ottla.records.control import build_end_marker

PIECE_BYTES = 500


async def complete(move: Relocation) -> PartitionLog:
    """Copy, switch and settle."""
    while True:
        await move.set_out()
        if not move.copy_piece(PIECE_BYTES):
            break
    switch = await move.prepare()
    try:
        log = switch.make()
        await switch.settle()
    finally:
        await switch.release()
    return log


async def begun(directories: LogDirectories, partition: TopicPartition, path: str) -> Relocation:
    target = directories.directory_at(path)
    assert target is not None
    return await begin(directories, partition, target)


async def move_to(directories: LogDirectories, partition: TopicPartition, path: str) -> PartitionLog:
    return await complete(await begun(directories, partition, path))


async def under_way(storage: NodeStorage) -> Relocation:
    """The move of t-0 to /b, before anything is copied."""
    move = await begun(storage.directories, T_0, "/b")
    await move.set_out()
    return move


def values(log: PartitionLog, start: int | None = None) -> dict[int, bytes | None]:
    """Offset → value of all records that a reader gets."""
    offset = log.log_start_offset if start is None else start
    found: dict[int, bytes | None] = {}
    while (records := log.read(offset, 700).records) is not None:
        got = {each.offset: each.value for each in records_of(records.read()) if each.offset >= offset}
        if not got:
            break
        found |= got
        offset = max(got) + 1
    return found


def log_of(storage: NodeStorage, partition: TopicPartition) -> PartitionLog:
    log = storage.directories.find(partition)
    assert log is not None
    return log


@pytest.fixture
def storage() -> NodeStorage:
    """t-0 in /a with 60 records in several segments; u-0 in /b."""
    storage = NodeStorage()
    storage.open()
    storage.create("t")
    storage.create("u")
    storage.fill(TopicPartition("t", 0))
    return storage


T_0 = TopicPartition("t", 0)


def test_the_folder_really_moves(storage: NodeStorage) -> None:
    before = log_of(storage, T_0)
    expected, ends = values(before), storage.ends()
    moved = run(move_to(storage.directories, T_0, "/b"))
    assert moved.folder == "/b/t-0"
    assert log_of(storage, T_0) is moved
    assert (values(moved), storage.ends()) == (expected, ends)
    names = {path: [name for name in storage.disk.list_directory(path) if name.startswith("t-0")] for path in ("/a", "/b")}
    assert names["/b"] == ["t-0"]
    assert [name[-7:] for name in names["/a"]] == ["-delete"]
    with pytest.raises(PartitionGone, match="moved from /a to /b"):
        before.read(0, 100)
    storage.clock.advance(SMALL.file_delete_delay_ms)
    run(storage.upkeep.delete_due())
    assert not [name for name in storage.disk.list_directory("/a") if name.startswith("t-0")]
    storage.reopen()
    assert values(log_of(storage, T_0)) == expected
    assert log_of(storage, T_0).folder == "/b/t-0"


def test_a_partition_moved_back_keeps_its_records(storage: NodeStorage) -> None:
    expected = values(log_of(storage, T_0))
    for path in ("/b", "/a", "/b"):
        run(move_to(storage.directories, T_0, path))
        storage.fill(T_0, 1)
    assert list(values(log_of(storage, T_0)).items())[: len(expected)] == list(expected.items())
    storage.crash()
    assert storage.ends()["t-0"] == (0, 64, 66)


def test_gap_that_recovery_found_moves_with_its_log(storage: NodeStorage) -> None:
    log_of(storage, T_0).gap_offset = 4
    assert run(move_to(storage.directories, T_0, "/b")).gap_offset == 4


def test_ranges_that_were_taken_before_stay_readable(storage: NodeStorage) -> None:
    records = log_of(storage, T_0).read(0, 400).records
    assert records is not None
    before = records.read()
    run(move_to(storage.directories, T_0, "/b"))
    assert records.read() == before


def test_appends_continue_while_the_log_is_copied(storage: NodeStorage) -> None:
    async def scene() -> None:
        async def pause() -> None:
            log = log_of(storage, T_0)
            log.append_as_leader(make_batch(b"new %d" % log.log_end_offset), 0)

        storage.disk.pause = pause
        await move_to(storage.directories, T_0, "/b")
        storage.disk.pause = None

    run(scene())
    moved = log_of(storage, T_0)
    found = values(moved)
    assert moved.folder == "/b/t-0"
    assert moved.log_end_offset > 70
    assert list(found) == list(range(moved.log_end_offset))
    assert all(found[offset] == b"new %d" % offset for offset in range(60, moved.log_end_offset))


def test_flushes_wait_for_a_durable_switch_and_flush_the_copy(storage: NodeStorage) -> None:
    async def scene() -> None:
        move = await under_way(storage)
        while move.copy_piece(PIECE_BYTES):
            pass
        switch = await move.prepare()
        waits = asyncio.create_task(move.log.flush())
        await asyncio.sleep(0)
        moved = switch.make()
        moved.append_as_leader(make_batch(b"after"), 0)
        begun_after = asyncio.create_task(moved.flush())
        for _ in range(5):
            await asyncio.sleep(0)
        assert not waits.done()  # a power loss could still undo the switch
        assert not begun_after.done()
        await switch.settle()
        assert await waits == await begun_after == moved.recovery_point == 61
        await switch.release()

    run(scene())
    storage.crash(power_loss=True)
    assert storage.ends()["t-0"] == (0, 60, 61)


def test_deleted_records_stay_deleted_also_in_the_middle_of_a_batch(storage: NodeStorage) -> None:
    log_of(storage, T_0).delete_records(7)
    run(move_to(storage.directories, T_0, "/b"))
    moved = log_of(storage, T_0)
    assert (moved.log_start_offset, moved.segments.first.base_offset) == (7, 6)
    assert list(values(moved)) == list(range(7, 60))
    storage.crash()
    assert storage.ends()["t-0"][0] == 7


def test_a_kill_right_after_the_switch_brings_no_deleted_records_back(storage: NodeStorage) -> None:
    async def scene() -> None:
        move = await under_way(storage)
        move.copy_rest()
        move.log.delete_records(7)
        await move.source.write_log_starts()
        (await move.prepare()).make()

    run(scene())
    storage.crash()
    assert log_of(storage, T_0).folder == "/b/t-0"
    assert log_of(storage, T_0).segments.first.base_offset == 0
    assert list(values(log_of(storage, T_0))) == list(range(7, 60))


def test_records_deleted_past_the_copys_end_restart_the_copy(storage: NodeStorage) -> None:
    async def scene() -> None:
        move = await under_way(storage)
        move.copy_piece(PIECE_BYTES)
        assert 0 < move.future.log_end_offset < 40
        move.log.delete_records(41)
        await complete(move)

    run(scene())
    assert list(values(log_of(storage, T_0))) == list(range(41, 60))


@pytest.mark.parametrize("start", [0, 60])
def test_an_empty_log(storage: NodeStorage, start: int) -> None:
    partition = T_0 if start else TopicPartition("u", 0)
    if start:
        log_of(storage, T_0).delete_records(60)
    directory = storage.directories.directory_of(partition)
    assert directory is not None
    run(move_to(storage.directories, partition, "/b" if directory.path == "/a" else "/a"))
    assert storage.ends()[str(partition)] == (start, start, start)
    storage.crash()
    assert storage.ends()[str(partition)][2] == start


def test_a_log_whose_last_offsets_were_compacted_away_is_copied(storage: NodeStorage) -> None:
    """As Apache leaves a log: the last segment with records ends before the active one begins."""
    log = log_of(storage, T_0)
    log.roll()
    last = list(log.segments)[-2]
    log.segments.remove(last)
    run(last.delete())
    end = last.base_offset
    run(move_to(storage.directories, T_0, "/b"))
    moved = log_of(storage, T_0)
    assert moved.log_end_offset == 60
    assert list(values(moved)) == list(range(end))
    assert moved.append_as_leader(make_batch(b"next"), 0).first_offset == 60
    storage.crash()
    assert storage.ends()["t-0"][2] == 61


def test_a_batch_larger_than_a_lowered_segment_bytes_is_copied(storage: NodeStorage) -> None:
    log = log_of(storage, T_0)
    log.append_as_leader(make_batch(b"x" * 1500), 0)
    log.append_as_leader(make_batch(b"y"), 0)
    expected = values(log)
    log.config = replace(SMALL, segment_bytes=1000)
    run(move_to(storage.directories, T_0, "/b"))
    assert values(log_of(storage, T_0)) == expected
    assert log_of(storage, T_0).config.segment_bytes == 1000


def test_producers_and_epochs_without_records_are_copied(storage: NodeStorage) -> None:
    log = log_of(storage, T_0)
    log.append_as_leader(make_batch(b"a", producer=(7, 0, 0)), 0)
    log.append_as_leader(make_batch(b"b", producer=(8, 0, 0)), 2)
    log.update_high_watermark(log.log_end_offset)
    log.delete_records(61)
    log.assign_epoch(5, 62)
    assert run(move_to(storage.directories, T_0, "/b")).epochs.entries == [(2, 61), (5, 62)]
    for _ in ("now", "after a restart"):
        again = log_of(storage, T_0).append_as_leader(make_batch(b"a", producer=(7, 0, 0)), 5)
        assert (again.is_duplicate, again.first_offset) == (True, 60)
        storage.reopen()


@pytest.mark.parametrize("commit", [True, False])
def test_transactions_continue_across_the_move(storage: NodeStorage, commit: bool) -> None:
    log = log_of(storage, T_0)
    log.append_as_leader(make_batch(b"a", producer=(7, 0, 0), transactional=True), 0)
    moved = run(move_to(storage.directories, T_0, "/b"))
    moved.update_high_watermark(moved.log_end_offset)
    assert moved.last_stable_offset == 60
    marker = build_end_marker(is_commit=commit, producer_id=7, producer_epoch=0, coordinator_epoch=0, timestamp_ms=T0)
    moved.append_as_leader(marker, 0, AppendOrigin.COORDINATOR)
    moved.update_high_watermark(moved.log_end_offset)
    assert moved.last_stable_offset == 62
    assert [each.first_offset for each in moved.aborted_transactions(0, 62)] == ([] if commit else [60])


def test_aborted_transactions_are_copied(storage: NodeStorage) -> None:
    log = log_of(storage, T_0)
    log.append_as_leader(make_batch(b"a", producer=(7, 0, 0), transactional=True), 0)
    marker = build_end_marker(is_commit=False, producer_id=7, producer_epoch=0, coordinator_epoch=0, timestamp_ms=T0)
    log.append_as_leader(marker, 0, AppendOrigin.COORDINATOR)
    expected = log.aborted_transactions(0, 62)
    assert len(expected) == 1
    assert run(move_to(storage.directories, T_0, "/b")).aborted_transactions(0, 62) == expected


def test_a_cancelled_move_leaves_the_log_and_no_copy(storage: NodeStorage) -> None:
    async def scene() -> None:
        move = await under_way(storage)
        move.copy_piece(PIECE_BYTES)
        await storage.directories.drop_future(T_0)
        with pytest.raises(PartitionGone, match="any more"):
            move.copy_piece(PIECE_BYTES)
        with pytest.raises(PartitionGone, match="any more"):
            await move.prepare()

    run(scene())
    assert storage.directories.future_of(T_0) is None
    storage.crash()
    assert storage.ends()["t-0"] == (0, 0, 60)
    assert not [name for name in storage.disk.list_directory("/b") if name.startswith("t-0")]


def test_a_partition_deleted_during_its_move_leaves_nothing(storage: NodeStorage) -> None:
    async def scene() -> None:
        move = await under_way(storage)
        move.copy_piece(PIECE_BYTES)
        assert await storage.directories.delete(T_0)
        with pytest.raises(PartitionGone):
            await move.prepare()

    run(scene())
    storage.crash()
    for path in ("/a", "/b"):
        assert not [name for name in storage.disk.list_directory(path) if name.startswith("t-0")]


def test_a_partition_of_another_node_cannot_be_moved(storage: NodeStorage) -> None:
    with pytest.raises(KafkaError, match="not on this node"):
        run(move_to(storage.directories, TopicPartition("nope", 0), "/b"))


def test_a_move_continues_after_a_clean_stop_and_restarts_after_a_kill(storage: NodeStorage) -> None:
    async def half() -> int:
        move = await under_way(storage)
        move.copy_piece(PIECE_BYTES)
        return move.future.log_end_offset

    copied = run(half())
    expected = values(log_of(storage, T_0))
    for clean in (True, False):
        storage.reopen() if clean else storage.crash()
        [move] = found_at_start(storage.directories)
        run(move.set_out())
        assert move.future.log_end_offset == (copied if clean else 0)
        move.copy_piece(PIECE_BYTES)
        copied = move.future.log_end_offset
    run(complete(move))
    assert found_at_start(storage.directories) == []
    assert values(log_of(storage, T_0)) == expected


def test_a_log_whose_first_records_were_compacted_away_keeps_its_start(storage: NodeStorage) -> None:
    log = log_of(storage, T_0)
    first = log.segments.first
    log.roll()
    log.segments.remove(first)
    run(first.delete())
    expected = values(log)
    assert min(expected) > log.log_start_offset == 0
    moved = run(move_to(storage.directories, T_0, "/b"))
    assert (moved.log_start_offset, values(moved)) == (0, expected)


def test_compaction_continues_from_its_checkpoint_after_a_move() -> None:
    storage = NodeStorage(
        compaction=True, topic_config=replace(SMALL, cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0)
    )
    directories = storage.open()
    storage.create("t")
    storage.fill(T_0)
    compactor = directories.compactor
    assert compactor is not None
    run(compactor.run_once(directories.logs))
    cleaned_up_to = compactor.checkpoint_of(log_of(storage, T_0))
    assert cleaned_up_to is not None
    run(move_to(directories, T_0, "/b"))
    assert compactor.checkpoint_of(log_of(storage, T_0)) == cleaned_up_to
    directories = storage.crash()
    assert directories.compactor is not None
    assert directories.compactor.checkpoint_of(log_of(storage, T_0)) == cleaned_up_to
    run(move_to(directories, T_0, "/a"))
    storage.fill(T_0, 5)
    run(directories.compactor.run_once(directories.logs))
    assert list(values(log_of(storage, T_0)))[-1] == log_of(storage, T_0).log_end_offset - 1


def _go_on(storage: NodeStorage, is_after_a_stop: bool) -> Relocation:
    """The move of t-0 that was left half done: asked for again, or found after a clean stop."""
    if not is_after_a_stop:
        return Relocation.of(storage.directories, T_0)
    storage.reopen()
    (move,) = found_at_start(storage.directories)
    return move


@pytest.mark.parametrize("is_after_a_stop", [False, True])
def test_copy_left_behind_starts_over_if_the_log_was_truncated_since(storage: NodeStorage, is_after_a_stop: bool) -> None:
    """Else the copy would bring back records that another leader had replaced, in place of acknowledged ones."""
    storage.reopen()
    move = run(under_way(storage))
    while move.copy_piece(PIECE_BYTES):
        pass
    run(storage.directories.truncate(T_0, 30))
    for number in range(40):
        log_of(storage, T_0).append_as_leader(make_batch(b"of the next leader %d" % number), 1)
    expected = values(log_of(storage, T_0))
    move = _go_on(storage, is_after_a_stop)
    assert values(run(complete(move))) == expected


@pytest.mark.parametrize("is_after_a_stop", [False, True])
def test_copy_left_behind_starts_over_if_the_log_was_compacted_since(is_after_a_stop: bool) -> None:
    """Else a record that the copy has would come back: its tombstone is gone from the log."""
    config = replace(SMALL, cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0, delete_retention_ms=0)
    storage = NodeStorage(compaction=True, topic_config=config)
    storage.open()
    storage.create("t")
    log_of(storage, T_0).append_as_leader(make_batch(b"x" * 200, key=b"deleted"), 0)
    storage.fill(T_0, 20)
    storage.reopen()
    move = run(under_way(storage))
    assert 0 < move.copy_piece(PIECE_BYTES) < log_of(storage, T_0).size_bytes
    log = log_of(storage, T_0)
    log.append_as_leader(make_batch(None, key=b"deleted"), 0)
    compactor = storage.directories.compactor
    assert compactor is not None
    for _ in range(3):
        storage.fill(T_0, 20)
        storage.clock.advance(1000)
        run(compactor.run_once(storage.directories.logs))
    expected = values(log)
    assert None not in expected.values()
    move = _go_on(storage, is_after_a_stop)
    assert values(run(complete(move))) == expected


def test_copy_from_before_a_power_loss_starts_over_also_after_a_clean_stop(storage: NodeStorage) -> None:
    """The copy was flushed and the log was not: they differ, and the stop came before the move could go on."""
    run(log_of(storage, T_0).flush())
    storage.fill(T_0, 10)
    move = run(under_way(storage))
    while move.copy_piece(PIECE_BYTES):
        pass
    run(move.future.flush())
    storage.crash(power_loss=True)
    assert log_of(storage, T_0).log_end_offset < 80
    for number in range(40):
        log_of(storage, T_0).append_as_leader(make_batch(b"after the power loss %d" % number), 1)
    expected = values(log_of(storage, T_0))
    move = _go_on(storage, is_after_a_stop=True)
    assert values(run(complete(move))) == expected
