"""What only the real disk has: descriptors, partial writes, locks between processes, spent handles."""

import asyncio
import errno
import gc
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.env import FILE_BYTES_MAX, SMALL_FILE_BYTES_MAX, OpenMode
from ottla.env.real import RealDisk
from ottla.env.real import file as file_module
from ottla.errors import CorruptFile, DirectoryInUse
from ottla.log.directories.partition_metadata import read_partition_metadata


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def test_a_range_pins_the_descriptor_until_it_dies(tmp_path: Path) -> None:
    file = RealDisk().open(f"{tmp_path}/a", OpenMode.CREATE)
    file.append(b"0123456789")
    piece = file.range(4, 3)
    fd = piece.fileno()
    file.close()
    gc.collect()
    assert is_open(fd)
    target = os.open(f"{tmp_path}/copy", os.O_RDWR | os.O_CREAT)
    assert os.sendfile(target, piece.fileno(), piece.position, piece.length) == 3
    assert os.pread(target, 10, 0) == b"456"
    os.close(target)
    del piece
    assert not is_open(fd)


def test_closing_without_ranges_closes_at_once(tmp_path: Path) -> None:
    file = RealDisk().open(f"{tmp_path}/a", OpenMode.CREATE)
    fd = file.range(0, 0).fileno()
    file.close()
    assert not is_open(fd)


def test_partial_writes_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_pwrite, real_pwritev = os.pwrite, os.pwritev
    calls = []

    def stingy_pwrite(fd: int, data: bytes, position: int) -> int:
        calls.append(len(data))
        return real_pwrite(fd, memoryview(data)[:3], position)

    def stingy_pwritev(fd: int, parts: list[bytes], position: int) -> int:
        calls.append(len(parts))
        return real_pwritev(fd, [memoryview(b"".join(parts))[:5]], position)

    monkeypatch.setattr(os, "pwrite", stingy_pwrite)
    monkeypatch.setattr(os, "pwritev", stingy_pwritev)
    file = RealDisk().open(f"{tmp_path}/a", OpenMode.CREATE)
    assert file.append(b"0123456789") == 0
    assert file.append(b"abc", b"defgh", b"ijklmno") == 10
    file.write_at(1, b"----------")
    assert len(calls) > 6
    assert file.size == 25
    assert file.read(0, 99) == b"0----------bcdefghijklmno"


def test_a_failed_append_is_cut_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_pwritev = os.pwritev
    file = RealDisk().open(f"{tmp_path}/a", OpenMode.CREATE)
    file.append(b"kept")

    def full(fd: int, parts: list[bytes], position: int) -> int:
        return real_pwritev(fd, [parts[0]], position)

    def no_space(fd: int, data: bytes, position: int) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwritev", full)
        patch.setattr(os, "pwrite", no_space)
        with pytest.raises(OSError, match="No space") as caught:
            file.append(b"lost", b"lost")
    assert caught.value.filename == f"{tmp_path}/a"
    assert file.size == 4
    assert os.path.getsize(f"{tmp_path}/a") == 4
    assert file.append(b"!") == 4


def test_a_handle_is_spent_when_cutting_back_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = RealDisk().open(f"{tmp_path}/a", OpenMode.CREATE)

    def broken(*_: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", broken)
        patch.setattr(os, "ftruncate", broken)
        with pytest.raises(OSError, match="Input/output"):
            file.append(b"x")
    with pytest.raises(OSError, match="earlier"):
        file.append(b"x")
    assert file.read(0, 10) == b""


def test_a_handle_is_spent_after_a_failed_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = RealDisk().open(f"{tmp_path}/a", OpenMode.CREATE)
    file.append(b"x")

    def broken(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(file_module, "sync_descriptor", broken)
        with pytest.raises(OSError, match="Input/output"):
            asyncio.run(file.sync())
    for call in (lambda: asyncio.run(file.sync()), lambda: file.append(b"x"), lambda: file.truncate(0)):
        with pytest.raises(OSError, match="earlier"):
            call()


def test_only_what_was_written_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(file_module, "sync_descriptor", synced.append)

    def syncs(file: file_module.RealFile) -> int:
        synced.clear()
        asyncio.run(file.sync())
        return len(synced)

    file = RealDisk().open(f"{tmp_path}/a", OpenMode.CREATE)
    file.truncate(0)
    assert syncs(file) == 0  # new and empty
    file.append(b"0123")
    assert [syncs(file), syncs(file)] == [1, 0]
    file.append(b"4567")
    assert [syncs(file), syncs(file)] == [1, 0]
    file.write_at(0, b"x")
    assert [syncs(file), syncs(file)] == [1, 0]
    file.truncate(4)
    file.append(b"4567")
    assert [syncs(file), syncs(file)] == [1, 0]
    file.truncate(0)
    file.close()
    for mode in (OpenMode.CREATE, OpenMode.WRITE):  # an earlier handle may not have synced it, not even its empty size
        again = RealDisk().open(f"{tmp_path}/a", mode)
        assert [syncs(again), syncs(again)] == [1, 0]


def test_bytes_written_during_a_sync_need_another_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = RealDisk().open(f"{tmp_path}/a", OpenMode.CREATE)
    writes: list[Callable[[], object]] = [
        lambda: file.append(b"x"),
        lambda: file.write_at(0, b"y"),
        lambda: (file.truncate(1), file.append(b"z")),
        lambda: None,
    ]
    monkeypatch.setattr(file_module, "sync_descriptor", lambda _: writes.pop(0)())
    file.append(b"first")
    for left in (3, 2, 1, 0, 0):
        asyncio.run(file.sync())
        assert len(writes) == left


HOLD = """
import sys
from ottla.env.real import RealDisk
lock = RealDisk().lock_directory(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


def test_a_lock_holds_against_other_processes_and_ends_with_its_own(tmp_path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(DirectoryInUse, match=rf"in use by process {holder.pid}\b.*log\.dirs"):
            RealDisk().lock_directory(str(tmp_path))
        holder.kill()
        holder.wait()
        RealDisk().lock_directory(str(tmp_path)).release()
    finally:
        holder.kill()
        holder.communicate()


def test_a_lock_holds_after_its_file_was_deleted(tmp_path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        (tmp_path / ".lock").unlink()
        for _ in range(2):
            with pytest.raises(DirectoryInUse, match=r"in use by another process.*log\.dirs"):
                RealDisk().lock_directory(str(tmp_path))
            assert not (tmp_path / ".lock").exists()
    finally:
        holder.kill()
        holder.communicate()
    lock = RealDisk().lock_directory(str(tmp_path))
    (tmp_path / ".lock").unlink()
    lock.release()
    RealDisk().lock_directory(str(tmp_path)).release()


RECORD_LOCK = """
import fcntl, os, sys
fd = os.open(sys.argv[1] + "/.lock", os.O_RDWR | os.O_CREAT)
try:
    fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    print("refused")
else:
    print("taken")
"""


def test_directory_lock_excludes_apache_kafka(tmp_path: Path) -> None:
    """Java's FileChannel.tryLock is a POSIX record lock. A failed second attempt in our own process must not release ours."""

    def other_process() -> str:
        return subprocess.run([sys.executable, "-c", RECORD_LOCK, str(tmp_path)], capture_output=True, text=True).stdout.strip()

    lock = RealDisk().lock_directory(str(tmp_path))
    with pytest.raises(DirectoryInUse, match="this process"):
        RealDisk().lock_directory(f"{tmp_path}/../{tmp_path.name}")
    assert other_process() == "refused"
    lock.release()
    assert other_process() == "taken"


@pytest.mark.skipif(not hasattr(os, "RWF_NOWAIT"), reason="this system does not tell what is in memory")
def test_an_evicted_range_is_not_resident_until_it_is_warmed(tmp_path: Path) -> None:
    disk = RealDisk()
    file = disk.open(f"{tmp_path}/a", OpenMode.CREATE)
    file.append(os.urandom(4 << 20))
    asyncio.run(file.sync())
    records = file.range(100_000, 3 << 20)
    assert records.is_resident()
    os.posix_fadvise(records.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if records.is_resident():
        pytest.skip("this file system keeps everything in memory")
    asyncio.run(disk.warm(records))
    assert records.is_resident()


@pytest.mark.parametrize(("umask", "folder", "file"), [(0o022, 0o750, 0o640), (0o007, 0o770, 0o660), (0, 0o770, 0o660)])
def test_files_and_folders_are_not_for_everybody(tmp_path: Path, umask: int, folder: int, file: int) -> None:
    before = os.umask(umask)
    try:
        disk = RealDisk()
        disk.make_directory(f"{tmp_path}/data")
        disk.open(f"{tmp_path}/data/log", OpenMode.CREATE).close()
        asyncio.run(disk.replace_file(f"{tmp_path}/data/checkpoint", b"0"))
        disk.lock_directory(f"{tmp_path}/data").release()
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(tmp_path / "data").st_mode) == folder
    for name in ("log", "checkpoint", ".lock"):
        assert stat.S_IMODE(os.stat(tmp_path / "data" / name).st_mode) == file, name


def test_nothing_is_written_through_a_symbolic_link(tmp_path: Path) -> None:
    disk, target = RealDisk(), tmp_path / "target"
    target.write_bytes(b"somebody's file")
    (tmp_path / "data").mkdir()
    for name in (".lock", "log", "checkpoint.tmp"):
        (tmp_path / "data" / name).symlink_to(target)
    with pytest.raises(OSError, match="symbolic link") as refused:
        disk.lock_directory(f"{tmp_path}/data")
    assert refused.value.filename == f"{tmp_path}/data/.lock"
    for mode in (OpenMode.WRITE, OpenMode.CREATE):
        with pytest.raises(OSError, match="symbolic link"):
            disk.open(f"{tmp_path}/data/log", mode)
    with pytest.raises(OSError, match=r"checkpoint\.tmp"):
        asyncio.run(disk.replace_file(f"{tmp_path}/data/checkpoint", b"0"))
    assert target.read_bytes() == b"somebody's file"
    (tmp_path / "linked").symlink_to(tmp_path / "data")
    os.unlink(tmp_path / "data" / ".lock")
    disk.lock_directory(f"{tmp_path}/linked").release()  # a log directory may be a link itself


def test_a_pipe_in_place_of_a_file_is_refused_at_once(tmp_path: Path) -> None:
    disk, path = RealDisk(), f"{tmp_path}/pipe"
    os.mkfifo(path)
    with pytest.raises(CorruptFile, match="is a pipe"):
        disk.read_file(path)
    for mode in OpenMode:
        with pytest.raises(OSError, match="is a pipe"):
            disk.open(path, mode)
    os.mkfifo(tmp_path / ".lock")
    with pytest.raises(OSError, match="is a pipe"):
        disk.lock_directory(str(tmp_path))


def test_a_file_too_large_to_be_read_whole_is_named(tmp_path: Path) -> None:
    path = f"{tmp_path}/partition.metadata"
    with open(path, "wb") as file:
        file.truncate(10 << 30)
    for bytes_max in (SMALL_FILE_BYTES_MAX, FILE_BYTES_MAX):
        with pytest.raises(CorruptFile, match="10,737,418,240 bytes") as refused:
            RealDisk().read_file(path, bytes_max)
        assert path in str(refused.value)
    with pytest.raises(CorruptFile):
        read_partition_metadata(RealDisk(), str(tmp_path))
