"""Opening a log: clean and unclean shutdowns, leftovers, damage of every kind of file."""

import struct
import zlib

import pytest
from tests.support.logs.batches import make_batch
from tests.support.logs.partition_logs import FOLDER, LogOnDisk, run

from ottla.env import OpenMode
from ottla.errors import CorruptFile, LogDirectoryFailed
from ottla.log.names import segment_file_name
from ottla.log.recovery.log_loader import bytes_to_recover, load_log, recover_folder

LAST = ".log"


def filled(flush: bool = True) -> LogOnDisk:
    """Five segments, with a producer, two epochs and aborted transactions."""
    env = LogOnDisk()
    env.fill(15, epoch=1)
    env.append(b"t" * 50, producer=(8, 0, 0), transactional=True, epoch=1)
    env.end_transaction(8, commit=False, epoch=1)
    env.fill(15, epoch=2)
    for number in range(4):
        env.append(b"p", producer=(9, 0, number), epoch=2)
    if flush:
        env.flush()
    return env


def overwrite(env: LogOnDisk, name: str, data: bytes) -> None:
    file = env.disk.open(f"{FOLDER}/{name}", OpenMode.CREATE)
    file.truncate(0)
    file.append(data)


def cut_segment(env: LogOnDisk, number: int, offset: int) -> None:
    """Cut the records from `offset` on off a segment, as a power loss does."""
    segment = list(env.log.segments)[number]
    cut = segment.find(offset)
    assert cut is not None
    name = segment_file_name(segment.base_offset, LAST)
    overwrite(env, name, env.disk.read_file(f"{FOLDER}/{name}")[: cut.position])


def check_whole(env: LogOnDisk, end: int = 66) -> None:
    assert env.log.log_end_offset == end
    assert env.offsets() == list(range(end))
    assert env.log.epochs.entries == [(1, 0), (2, 32)]
    assert [txn.producer_id for txn in env.log.aborted_transactions(0, 100)] == [8]
    for number in range(4):
        assert env.log.append_as_leader(make_batch(b"p", producer=(9, 0, number)), 2).is_duplicate
    found = env.log.offset_for_time(1_700_000_000_000 + 10 * 40)
    assert found is not None
    assert found.offset == 40


def test_a_clean_restart_reads_little() -> None:
    env = filled()
    env.close()
    env.disk.counts.clear()
    report = env.load(clean=True)
    assert report.notes == []
    assert report.segments_recovered == 0
    assert env.log.recovery_point == 66
    check_whole(env)


def test_an_unclean_restart_checks_from_the_recovery_point() -> None:
    env = filled()
    env.recovery_point = 40
    report = env.crash()
    assert report.notes == []
    assert report.segments_recovered == len([base for base in env.log.segments.base_offsets if base > 40]) + 1
    assert env.log.recovery_point == 40
    check_whole(env)


def test_a_torn_tail_is_cut_and_reported(caplog: pytest.LogCaptureFixture) -> None:
    env = filled()
    name = segment_file_name(env.log.segments.active.base_offset, LAST)
    data = env.disk.read_file(f"{FOLDER}/{name}")
    overwrite(env, name, data[:-7])
    report = env.crash()
    assert report.bytes_cut == len(make_batch(b"p")) - 7
    assert env.log.log_end_offset == 65
    assert any(f"cut {report.bytes_cut} bytes off" in note and name in note for note in report.notes)
    assert "cut" in caplog.text
    assert env.log.size_bytes == sum(len(env.disk.read_file(f"{FOLDER}/{n}")) for n in env.files() if n.endswith(".log"))


def test_segments_after_a_damaged_one_are_removed() -> None:
    env = filled()
    bases = env.log.segments.base_offsets
    name = segment_file_name(bases[1], LAST)
    data = bytearray(env.disk.read_file(f"{FOLDER}/{name}"))
    data[len(data) // 2] ^= 0xFF
    overwrite(env, name, bytes(data))
    env.recovery_point = 0
    report = env.crash()
    assert bases[1] < env.log.log_end_offset < bases[2]
    assert env.offsets() == list(range(env.log.log_end_offset))
    assert report.segments_removed == len(bases) - 2
    assert sum("removed segment" in note for note in report.notes) == len(bases) - 2
    env.fill(2, epoch=3)
    assert env.offsets() == list(range(env.log.log_end_offset))


def test_segments_after_a_gap_are_kept() -> None:
    """Compaction under an earlier policy leaves such a gap: dropping what follows would lose whole records."""
    env = filled()
    bases, end = env.log.segments.base_offsets, env.log.log_end_offset
    cut_segment(env, 0, 4)
    env.recovery_point = 0
    report = env.crash()
    assert env.offsets() == [*range(4), *range(bases[1], end)]
    assert env.log.segments.base_offsets == bases
    assert report.segments_removed == 0
    assert any(f"offsets 4 up to {bases[1] - 1} are in no segment" in note for note in report.notes)
    assert env.log.gap_offset == report.gap_offset == 4


@pytest.mark.parametrize("recovery_point", [0, 4, 5])
def test_an_empty_segment_after_records_that_were_never_flushed_is_removed(recovery_point: int) -> None:
    """Followers could fetch nothing between the last record and the log's end, and would never be in sync."""
    env = filled()
    bases = env.log.segments.base_offsets
    cut_segment(env, 0, 4)
    for base in bases[1:]:
        overwrite(env, segment_file_name(base, LAST), b"")
    env.recovery_point = recovery_point
    report = env.crash()
    assert env.offsets() == [*range(4)]
    is_flushed = recovery_point > 4  # then compaction may have left the gap at 4: the log ends behind it
    assert env.log.log_end_offset == (bases[1] if is_flushed else 4)
    assert report.segments_removed == len(bases) - (2 if is_flushed else 1)
    assert env.log.gap_offset == (4 if is_flushed else None)
    if not is_flushed:
        env.fill(1)
        assert env.offsets() == [*range(env.log.log_end_offset)]


@pytest.mark.parametrize("is_first_gap_flushed", [False, True])
def test_a_log_that_ends_at_its_second_gap_is_mended_there(is_first_gap_flushed: bool) -> None:
    env = filled()
    bases = env.log.segments.base_offsets
    cut_segment(env, 0, 4)
    cut_segment(env, 1, bases[2] - 2)
    for base in bases[2:]:
        overwrite(env, segment_file_name(base, LAST), b"")
    env.recovery_point = 5 if is_first_gap_flushed else 0
    report = env.crash()
    assert env.offsets() == [*range(4), *range(bases[1], bases[2] - 2)]
    assert env.log.log_end_offset == bases[2] - 2
    assert (env.log.gap_offset, report.segments_removed) == (4, len(bases) - 2)
    assert env.log.segments.base_offsets == bases[:2]
    env.fill(1)
    assert env.offsets()[-1] == env.log.log_end_offset - 1


def test_a_torn_tail_after_a_clean_shutdown_is_cut_too() -> None:
    env = filled()
    env.close()
    name = segment_file_name(env.log.segments.active.base_offset, LAST)
    overwrite(env, name, env.disk.read_file(f"{FOLDER}/{name}") + b"garbage")
    report = env.load(clean=True)
    assert report.bytes_cut == 7
    check_whole(env)


def test_preallocated_zeros_are_cut() -> None:
    env = filled()
    name = segment_file_name(env.log.segments.active.base_offset, LAST)
    overwrite(env, name, env.disk.read_file(f"{FOLDER}/{name}") + bytes(5000))
    assert env.crash().bytes_cut == 5000
    check_whole(env)


def test_the_start_offset_comes_from_the_checkpoint() -> None:
    env = filled()
    env.log_start_offset = 35
    env.crash()
    assert env.log.log_start_offset == 35
    assert env.log.epochs.entries == [(2, 35)]
    assert env.offsets()[0] == 35


def test_a_log_that_ends_before_its_start_is_emptied() -> None:
    env = filled()
    env.log_start_offset = 500
    report = env.crash()
    assert (env.log.log_start_offset, env.log.log_end_offset) == (500, 500)
    assert any("before its start" in note for note in report.notes)
    assert env.append(b"a") == 500


def test_an_empty_folder_is_an_empty_log() -> None:
    env = LogOnDisk()
    assert env.log.segments.base_offsets == [0]
    assert env.files() == [f"{0:020d}{suffix}" for suffix in (".index", ".log", ".timeindex")]


def test_leftovers_are_cleared_away() -> None:
    env = filled()
    env.close()
    leftovers = [
        f"{0:020d}.log.deleted",
        f"{7:020d}.snapshot.deleted",
        f"{0:020d}.log.cleaned",
        f"{0:020d}.index.cleaned",
        f"{900:020d}.index",
        f"{900:020d}.txnindex",
        "leader-epoch-checkpoint.tmp",
    ]
    kept = [f"{5:020d}-{1:010d}.checkpoint.deleted", "partition.metadata", "something.else"]
    for name in leftovers + kept:
        overwrite(env, name, b"x")
    report = env.load(clean=True)
    assert not set(leftovers) & set(env.files())
    assert set(kept) <= set(env.files())
    assert len(report.notes) == len(leftovers)
    check_whole(env)


def test_epochs_before_a_log_start_that_a_kill_undid_are_read_again() -> None:
    """Else the leader would say that epoch 2 ends at 65, and a replica would keep other records from 40 on."""
    env = LogOnDisk()
    for epoch in range(1, 6):
        env.fill(10, epoch=epoch)
    entries = env.log.epochs.entries
    env.log.update_high_watermark(env.log.log_end_offset)
    env.checkpoint()
    env.log.delete_records(65)
    env.recovery_point = run(env.log.flush())  # the log start is not checkpointed yet
    env.crash()
    assert (env.log.log_start_offset, env.log.epochs.entries) == (0, entries)
    assert env.log.end_offset_for_epoch(2) == (2, 40)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("damage", ["delete", "empty", "cut", "flip"])
@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".snapshot", "leader-epoch-checkpoint"])
def test_damaged_derived_files_are_rebuilt(suffix: str, damage: str, clean: bool) -> None:
    env = filled()
    if clean:
        env.close()
    names = [name for name in env.files() if name.endswith(suffix)]
    assert names
    for name in names:
        data = bytearray(env.disk.read_file(f"{FOLDER}/{name}"))
        if damage == "delete":
            run(env.disk.remove(f"{FOLDER}/{name}"))
            continue
        if damage == "empty":
            data.clear()
        elif damage == "cut":
            del data[len(data) // 2 :]
        elif data:
            data[len(data) // 2] ^= 0x41
        overwrite(env, name, bytes(data))
    if clean:
        env.load(clean=True)
    else:
        env.crash()
    if suffix.startswith("leader") and damage == "flip":
        assert env.log.log_end_offset == 66  # a flipped digit may give a valid file; only the records must be right
        assert env.offsets() == list(range(66))
    else:
        check_whole(env)


@pytest.mark.parametrize("damage", ["delete", "cut", "flip"])
def test_the_transaction_index_after_an_unclean_stop(damage: str) -> None:
    env = filled()
    env.recovery_point = 0
    name = next(name for name in env.files() if name.endswith(".txnindex"))
    data = bytearray(env.disk.read_file(f"{FOLDER}/{name}"))
    if damage == "delete":
        run(env.disk.remove(f"{FOLDER}/{name}"))
    elif damage == "cut":
        overwrite(env, name, bytes(data[:-5]))
    else:
        data[20] ^= 0x80
        overwrite(env, name, bytes(data))
    env.crash()
    check_whole(env)


@pytest.mark.parametrize("at", [0, 10, 18])
def test_the_transaction_index_after_a_clean_shutdown(at: int) -> None:
    """An impossible entry is detected; a flip within plausible numbers is not, as in Apache Kafka."""
    env = filled()
    env.close()
    name = next(name for name in env.files() if name.endswith(".txnindex"))
    data = bytearray(env.disk.read_file(f"{FOLDER}/{name}"))
    data[at] ^= 0xC0
    overwrite(env, name, bytes(data))
    report = env.load(clean=True)
    assert any(".txnindex" in note for note in report.notes)
    check_whole(env)


def test_a_missing_log_file_leaves_a_gap_that_readers_skip() -> None:
    env = filled()
    env.close()
    bases = env.log.segments.base_offsets
    run(env.disk.remove(f"{FOLDER}/{segment_file_name(bases[1], LAST)}"))
    report = env.load(clean=True)
    assert env.offsets() == [*range(bases[1]), *range(bases[2], 66)]
    assert any("there is no" in note for note in report.notes)


def test_reading_a_cut_segment_in_the_middle_of_the_log_fails() -> None:
    env = filled()
    env.close()
    name = segment_file_name(env.log.segments.base_offsets[1], LAST)
    overwrite(env, name, env.disk.read_file(f"{FOLDER}/{name}")[:-20])
    env.load(clean=True)
    with pytest.raises(CorruptFile, match=f"{name} at byte"):
        env.offsets()


def test_old_message_formats_are_refused_not_cut() -> None:
    body = struct.pack(">bbqi", 1, 0, 1_000, -1) + struct.pack(">i3s", 3, b"old")
    message = struct.pack(">qiI", 0, len(body) + 4, zlib.crc32(body)) + body
    env = LogOnDisk()
    env.close()
    overwrite(env, segment_file_name(0, LAST), message * 3)
    with pytest.raises(CorruptFile, match="magic 1"):
        env.crash()
    assert env.disk.read_file(f"{FOLDER}/{segment_file_name(0, LAST)}") == message * 3


def test_a_segment_with_too_many_offsets_is_split() -> None:
    env = LogOnDisk()
    far = 2**31 + 7
    env.close()
    data = bytes(make_batch(b"a") + make_batch(b"b", base_offset=5) + make_batch(b"c", base_offset=far))
    overwrite(env, segment_file_name(0, LAST), data)
    report = env.crash()
    assert env.log.segments.base_offsets == [0, far]
    assert env.offsets() == [0, 5, far]
    assert any("split" in note for note in report.notes)


def test_recovery_as_a_job_leaves_a_folder_that_loads_at_once() -> None:
    env = filled(flush=False)
    name = segment_file_name(env.log.segments.active.base_offset, LAST)
    env.disk = env.disk.crash(power_loss=False)
    overwrite(env, name, env.disk.read_file(f"{FOLDER}/{name}") + b"torn")
    assert bytes_to_recover(env.disk, FOLDER, 0) == env.log.size_bytes + 4
    report = run(recover_folder(env.disk, env.clock, FOLDER, env.config, recovery_point=0))
    assert report.bytes_cut == 4
    assert report.recovery_point == report.log_end_offset == 66
    assert report.as_json()["notes"] == report.notes
    env.disk.counts.clear()
    env.log, again = run(load_log(env.disk, env.clock, FOLDER, env.config, recovery_point=66, clean_shutdown=True))
    assert again.notes == []
    assert again.segments_recovered == 0
    check_whole(env)


def test_killed_while_loading_and_loaded_again() -> None:
    """Recovery itself may be killed at any point; the next one completes."""
    finished = 0
    for calls in range(400):
        env = filled(flush=False)
        name = segment_file_name(env.log.segments.active.base_offset, LAST)
        env.disk = env.disk.crash(power_loss=False)
        overwrite(env, name, env.disk.read_file(f"{FOLDER}/{name}") + b"torn")
        env.disk.crash_before(calls)
        try:
            run(env.load_async())
            finished += 1
        except LogDirectoryFailed:
            pass
        env.crash()
        check_whole(env)
        if finished > 1:
            return
    pytest.fail("loading never finished")
