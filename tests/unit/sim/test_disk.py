"""The simulated disk's faults: what survives which crash, and that injected faults hit the right calls."""

import asyncio
import errno
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.env import OpenMode
from ottla.env.real import RealDisk
from ottla.sim.disk import PAGE_BYTES, DiskCrashed, Inode, MemoryDisk, copy_tree
from ottla.sim.world import ManualClock


def made(random: Random | None = None) -> MemoryDisk:
    disk = MemoryDisk(random)
    disk.make_directory("/d")
    asyncio.run(disk.sync_directory("/"))
    return disk


def synced_file(disk: MemoryDisk, path: str, data: bytes) -> None:
    file = disk.open(path, OpenMode.CREATE)
    file.append(data)
    asyncio.run(file.sync())
    asyncio.run(disk.sync_directory("/d"))


def test_a_killed_process_loses_nothing_and_its_handles_are_dead() -> None:
    disk = made()
    lock = disk.lock_directory("/d")
    file = disk.open("/d/a", OpenMode.CREATE)
    file.append(b"unsynced")
    piece = file.range(0, 3)
    after = disk.crash(power_loss=False)
    assert after.read_file("/d/a") == b"unsynced"
    for call in (lambda: file.append(b"x"), lambda: disk.exists("/d/a"), piece.read, lambda: file.read(0, 1)):
        with pytest.raises(DiskCrashed):
            call()
    after.lock_directory("/d")
    lock.release()
    assert after.counts["kills"] == 1


def test_power_loss_keeps_synced_bytes_and_any_part_of_the_rest() -> None:
    outcomes = set()
    counts = made().counts
    old, new = b"o" * (3 * PAGE_BYTES), b"n" * (3 * PAGE_BYTES)
    for seed in range(60):
        disk = made(Random(seed))
        synced_file(disk, "/d/a", old)
        disk.open("/d/a", OpenMode.WRITE).append(new)
        after = disk.crash(power_loss=True)
        found = after.read_file("/d/a")
        assert found.startswith(old)
        outcomes.add(found)
        counts += after.counts
    assert {old, old + new} <= outcomes
    assert all(counts[fate] > 3 for fate in ("lost", "kept", "prefix", "torn"))
    holes = [found for found in outcomes if b"\0n" in found]
    assert holes, "no torn file had a hole of zeros before later bytes"


def test_power_loss_may_undo_an_overwrite_and_a_truncation() -> None:
    seen_overwrite, seen_truncation = set(), set()
    undone = 0
    for seed in range(60):
        disk = made(Random(seed))
        synced_file(disk, "/d/a", b"0123456789")
        synced_file(disk, "/d/b", b"0123456789")
        disk.open("/d/a", OpenMode.WRITE).write_at(2, b"xx")
        disk.open("/d/b", OpenMode.WRITE).truncate(4)
        after = disk.crash(power_loss=True)
        seen_overwrite.add(after.read_file("/d/a"))
        seen_truncation.add(after.read_file("/d/b"))
        undone += after.counts["truncation_undone"]
    assert seen_overwrite == {b"0123456789", b"01xx456789"}
    assert {b"0123456789", b"0123"} < seen_truncation
    assert undone > 0


def test_power_loss_may_undo_unsynced_creations_and_removals() -> None:
    created, removed, counts = set(), set(), made().counts
    for seed in range(40):
        disk = made(Random(seed))
        synced_file(disk, "/d/old", b"old")
        file = disk.open("/d/new", OpenMode.CREATE)
        asyncio.run(file.sync())
        asyncio.run(disk.remove("/d/old"))
        after = disk.crash(power_loss=True)
        created.add(after.exists("/d/new"))
        removed.add(after.exists("/d/old"))
        counts += after.counts
    assert created == removed == {True, False}
    assert counts["create_undone"] > 3
    assert counts["remove_undone"] > 3


def test_a_rename_is_never_half_done() -> None:
    undone = 0
    for seed in range(40):
        disk = made(Random(seed))
        synced_file(disk, "/d/a", b"a")
        synced_file(disk, "/d/b", b"b")
        fault = disk.fail("sync_directory", "/d")
        with pytest.raises(OSError, match="injected"):
            asyncio.run(disk.rename("/d/a", "/d/b"))
        assert fault.hits == 1
        after = disk.crash(power_loss=True)
        names = {name: after.read_file(f"/d/{name}") for name in after.list_directory("/d")}
        assert names in ({"b": b"a"}, {"a": b"a", "b": b"b"})
        undone += after.counts["rename_undone"]
    assert 5 < undone < 35


def test_replace_file_leaves_old_or_new_wherever_it_is_stopped() -> None:
    seen = set()
    for seed in range(30):
        for steps in range(5):
            for power_loss in (True, False):
                disk = made(Random(seed))
                asyncio.run(disk.replace_file("/d/state", b"old"))
                disk.crash_before(steps)
                try:
                    asyncio.run(disk.replace_file("/d/state", b"new"))
                except DiskCrashed:
                    assert steps < 4
                else:
                    assert steps == 4
                found = disk.crash(power_loss).read_file("/d/state")
                seen.add(found)
                assert found == b"new" or (found == b"old" and steps < 4)
    assert seen == {b"old", b"new"}


def test_synced_renamed_and_replaced_names_survive() -> None:
    for seed in range(20):
        disk = made(Random(seed))
        synced_file(disk, "/d/a", b"a")
        asyncio.run(disk.rename("/d/a", "/d/b"))
        asyncio.run(disk.replace_file("/d/c", b"c"))
        after = disk.crash(power_loss=True)
        assert after.list_directory("/d") == ["b", "c"]
        assert after.read_file("/d/b") == b"a"


def test_rename_now_is_durable_once_its_folder_is_synced() -> None:
    undone = 0
    for seed in range(40):
        disk = made(Random(seed))
        synced_file(disk, "/d/a", b"a")
        disk.rename_now("/d/a", "/d/b")
        if seed % 2:
            asyncio.run(disk.sync_directory("/d"))
        after = disk.crash(power_loss=True)
        assert after.list_directory("/d") in (["b"], *([] if seed % 2 else [["a"]]))
        undone += after.counts["rename_undone"]
    assert 3 < undone < 17


def test_faults_strike_by_operation_path_and_turn() -> None:
    disk = made()
    log, index = disk.open("/d/1.log", OpenMode.CREATE), disk.open("/d/1.index", OpenMode.CREATE)
    fault = disk.fail("append", "*.log", errno.ENOSPC, skip=1, times=2)
    log.append(b"1")
    index.append(b"1")
    for _ in range(2):
        with pytest.raises(OSError, match="injected") as caught:
            log.append(b"2")
        assert caught.value.errno == errno.ENOSPC
    log.append(b"3")
    assert log.read(0, 9) == b"13"
    assert (fault.hits, disk.counts["failed"]) == (2, 2)


def test_a_short_append_is_cut_back_or_spends_the_handle() -> None:
    disk = made()
    file = disk.open("/d/a", OpenMode.CREATE)
    disk.fail("append", keep_bytes=3)
    with pytest.raises(OSError, match="injected"):
        file.append(b"012345")
    assert file.append(b"next") == 0
    disk.fail("append", keep_bytes=3, cut_back_fails=True)
    with pytest.raises(OSError, match="injected"):
        file.append(b"012345")
    with pytest.raises(OSError, match="earlier"):
        file.append(b"x")
    assert disk.read_file("/d/a") == b"next012"


def test_a_failed_sync_spends_the_handle() -> None:
    disk = made()
    file = disk.open("/d/a", OpenMode.CREATE)
    disk.fail("sync")
    with pytest.raises(OSError, match="injected"):
        asyncio.run(file.sync())
    with pytest.raises(OSError, match="earlier"):
        asyncio.run(file.sync())


def test_a_failed_directory_stays_failed() -> None:
    disk = made()
    disk.make_directory("/e")
    file = disk.open("/d/a", OpenMode.CREATE)
    disk.fail_directory("/d")
    for call in (
        lambda: file.append(b"x"),
        lambda: disk.list_directory("/d"),
        lambda: asyncio.run(disk.rename("/d/a", "/d/b")),
    ):
        with pytest.raises(OSError, match="has failed"):
            call()
    disk.open("/e/fine", OpenMode.CREATE).append(b"x")


def test_a_crash_in_an_append_leaves_a_part_of_it() -> None:
    sizes = set()
    for seed in range(30):
        disk = made(Random(seed))
        file = disk.open("/d/a", OpenMode.CREATE)
        file.append(b"01234")
        disk.crash_before(0)
        with pytest.raises(DiskCrashed):
            file.append(b"56789")
        found = disk.crash(power_loss=False).read_file("/d/a")
        assert b"0123456789".startswith(found)
        sizes.add(len(found))
    assert min(sizes) == 5
    assert len(sizes) > 3


@given(st.data())
def test_an_inode_always_remembers_its_last_sync(data: st.DataObject) -> None:
    """Against a plain copy taken at each sync."""
    inode = Inode(0)
    synced = b""
    for _ in range(data.draw(st.integers(1, 12))):
        size = len(inode.data)
        kind = data.draw(st.sampled_from(("append", "write", "truncate", "sync")))
        if kind == "sync":
            inode.sync()
            synced = bytes(inode.data)
        elif kind == "truncate":
            inode.truncate(data.draw(st.integers(0, size)))
        else:
            length = data.draw(st.integers(0, 3 * PAGE_BYTES))
            position = size if kind == "append" else data.draw(st.integers(0, size + PAGE_BYTES))
            inode.write(position, bytes([data.draw(st.integers(1, 255))]) * length)
        assert bytes(inode.synced_bytes()) == synced
    if inode.is_synced:
        assert bytes(inode.data) == synced


def test_copying_to_a_real_folder_and_back(tmp_path: Path) -> None:
    disk = made()
    disk.make_directory("/d/topic-0")
    disk.open("/d/topic-0/0.log", OpenMode.CREATE).append(b"x" * 3_000_000)
    disk.set_modified_ms("/d/topic-0/0.log", 1_500_000_000_000)
    disk.open("/d/empty", OpenMode.CREATE)
    real = RealDisk()
    copy_tree(disk, "/d", real, f"{tmp_path}/out")
    assert (tmp_path / "out/topic-0/0.log").stat().st_size == 3_000_000
    back = MemoryDisk()
    copy_tree(real, f"{tmp_path}/out", back, "/back")
    assert back.list_directory("/back") == ["empty", "topic-0"]
    assert back.read_file("/back/topic-0/0.log") == b"x" * 3_000_000
    assert back.modified_ms("/back/topic-0/0.log") == 1_500_000_000_000


def test_awaited_calls_await_pause_first() -> None:
    pauses = []

    async def pause() -> None:
        pauses.append(1)
        await asyncio.sleep(0)

    disk = MemoryDisk(pause=pause)
    asyncio.run(disk.replace_file("/a", b"x"))
    assert len(pauses) == 4


def test_manual_clock() -> None:
    clock = ManualClock(1000)
    clock.advance(250)
    assert (clock.now_ms(), clock.monotonic_s()) == (1250, 0.25)
    clock.jump(-500)
    assert (clock.now_ms(), clock.monotonic_s()) == (750, 0.25)
    with pytest.raises(ValueError, match="jump"):
        clock.advance(-1)


def test_on_crash_is_called_during_the_crashing_call() -> None:
    disk = MemoryDisk()
    calls: list[bool] = []
    disk.on_crash = lambda: calls.append(disk.crashed)
    disk.crash_before(1)
    disk.make_directory("/a")
    with pytest.raises(DiskCrashed):
        disk.make_directory("/b")
    with pytest.raises(DiskCrashed):
        disk.make_directory("/c")
    assert calls == [True]
