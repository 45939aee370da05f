"""`RealDisk`: names, folders and locks on the operating system's disk (`env/disk.py` is the contract, `file.py` the files).

Calls that may wait for the device run in the `Workers` given at construction. The others are plain system calls on the
caller's thread. A folder is synced by opening and fsyncing it.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, TypeVar

from ottla.env.disk import FILE_BYTES_MAX, Buffer, DirectoryLock, DiskSpace, File, FileRange, OpenMode, refuse_large_file
from ottla.env.real.descriptors import FILE_MODE, Brief, can_open, connection_descriptor_max, spares
from ottla.env.real.file import (
    NOT_OPENED,
    Descriptor,
    RealFile,
    RealFileRange,
    Unsynced,
    read_exactly,
    sync_descriptor,
    warm,
    write_all,
)
from ottla.env.work import InlineWorkers, Workers
from ottla.errors import CorruptFile, DirectoryInUse, is_out_of_descriptors

T = TypeVar("T")

FLAGS = {
    OpenMode.READ: os.O_RDONLY | os.O_NONBLOCK,
    OpenMode.WRITE: os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK,
    OpenMode.CREATE: os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK,
}
"""Nothing is written through a symbolic link: it could name any file. Without O_NONBLOCK a pipe would hold up its opener."""

FOLDER_MODE = 0o770
_HELD_ERRORS = (errno.EAGAIN, errno.EACCES, errno.EWOULDBLOCK)
"""A lock is held by another process."""
_locked_here: dict[str, "RealDirectoryLock"] = {}
"""Directories that this process has locked, by real path. `RealDirectoryLock` says why they are tracked."""


class RealDisk:
    """`Disk` over the operating system's files. Without `workers` the awaited calls run in place."""

    file_class: ClassVar[type[RealFile]] = RealFile

    def __init__(self, workers: Workers | None = None) -> None:
        self._workers: Workers = workers if workers is not None else InlineWorkers()
        spares.fill()

    def open(self, path: str, mode: OpenMode) -> RealFile:
        flags = FLAGS[mode] | os.O_CLOEXEC
        if mode is OpenMode.CREATE:
            try:
                file = self.file_class(os.open(path, flags | os.O_EXCL, FILE_MODE), path, 0, self._workers)
            except FileExistsError:
                pass
            else:
                file.note_new()
                return file
        fd = _open(path, flags)
        status = os.fstat(fd)
        if stat.S_ISDIR(status.st_mode):
            os.close(fd)
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not stat.S_ISREG(status.st_mode):
            os.close(fd)
            raise OSError(errno.EINVAL, "it is a pipe or a device, not a file", path)
        return self.file_class(fd, path, status.st_size, self._workers)

    def open_later(self, path: str, size: int) -> RealFile:
        return self.file_class(NOT_OPENED, path, size, self._workers)

    def can_open(self, files: int, for_growth: bool = False) -> bool:
        return can_open(files, Descriptor.open_count, for_growth)

    def is_short_of_descriptors(self) -> bool:
        return 2 * Descriptor.open_count > connection_descriptor_max()

    def absolute(self, path: str) -> str:
        return os.path.abspath(path)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def list_directory(self, path: str) -> list[str]:
        return sorted(_even_if_short(lambda: os.listdir(path)))

    def list_files(self, path: str) -> dict[str, int]:
        def listed() -> list[tuple[str, int]]:
            with os.scandir(path) as entries:
                return [(each.name, -1 if each.is_dir() else each.stat().st_size) for each in entries]

        return dict(sorted(_even_if_short(listed)))

    def make_directory(self, path: str) -> None:
        os.makedirs(path, FOLDER_MODE, exist_ok=True)

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))

    def read_file(self, path: str, bytes_max: int = FILE_BYTES_MAX) -> bytes:
        with Brief(path, os.O_RDONLY | os.O_NONBLOCK) as fd:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
                raise CorruptFile(path, 0, "it is a pipe or a device, not a file", "Remove it, or restore the file from a copy")
            refuse_large_file(path, status.st_size, bytes_max)
            try:
                return read_exactly(fd, 0, status.st_size)
            except OSError as error:  # errors of calls on descriptors do not name the file
                raise OSError(error.errno, error.strerror, path) from None

    def lock_directory(self, path: str) -> DirectoryLock:
        return RealDirectoryLock(path)

    async def warm(self, records: FileRange) -> None:
        assert isinstance(records, RealFileRange)
        await self._workers.run(lambda: warm(records))

    async def replace_file(self, path: str, data: Buffer) -> None:
        await self.replace_files({path: data})

    async def replace_files(self, files: Mapping[str, Buffer]) -> None:
        await self._workers.run(lambda: _replace_files(files))

    async def rename(self, old: str, new: str) -> None:
        def call() -> None:
            os.replace(old, new)
            _sync_folder(os.path.dirname(new))
            if os.path.dirname(old) != os.path.dirname(new):
                _sync_folder(os.path.dirname(old))

        await self._workers.run(call)

    def rename_now(self, old: str, new: str) -> None:
        os.replace(old, new)

    async def remove(self, path: str) -> None:
        await self._workers.run(_unless_gone(lambda: os.remove(path)))

    async def remove_directory(self, path: str) -> None:
        await self._workers.run(_unless_gone(lambda: _even_if_short(lambda: _remove_tree(path))))

    async def sync_directory(self, path: str) -> None:
        await self._workers.run(lambda: _sync_folder(path))

    async def sync_all(self, files: Sequence[File], folders: Sequence[str]) -> None:
        waiting: list[tuple[RealFile, Unsynced]] = []
        for file in files:
            assert isinstance(file, RealFile)
            if (unsynced := file.unsynced()) is not None:
                waiting.append((file, unsynced))

        def call() -> None:
            for _, unsynced in waiting:
                sync_descriptor(unsynced.descriptor.fd)
            for folder in folders:
                _sync_folder(folder)

        if not waiting and not folders:
            return
        try:
            await self._workers.run(call)
        except OSError as error:
            for file, _ in waiting:
                file.sync_failed(error)
            raise
        for file, unsynced in waiting:
            file.note_synced(unsynced)

    async def space(self, path: str) -> DiskSpace:
        found = await self._workers.run(lambda: os.statvfs(path))
        return DiskSpace(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)


def _open(path: str, flags: int) -> int:
    try:
        return os.open(path, flags, FILE_MODE)
    except OSError as error:
        if error.errno != errno.ELOOP or not os.path.islink(path):
            raise
        raise OSError(errno.ELOOP, "it is a symbolic link, and nothing is written through one", path) from None


def _remove_tree(path: str) -> None:
    from shutil import rmtree  # imported late: shutil imports the compression modules

    rmtree(path)


def _unless_gone(call: Callable[[], None]) -> Callable[[], None]:
    def guarded() -> None:
        try:
            call()
        except FileNotFoundError:
            pass

    return guarded


def _replace_files(files: Mapping[str, Buffer]) -> None:
    """Write all files, then sync all, then rename all: the first sync also writes out much of the others' data."""
    for path, data in files.items():
        with Brief(f"{path}.tmp", os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK) as fd:
            write_all(fd, 0, [data])
            if len(files) == 1:
                sync_descriptor(fd)
    if len(files) > 1:
        for path in files:
            with Brief(f"{path}.tmp", os.O_RDWR) as fd:
                sync_descriptor(fd)
    for path in files:
        os.replace(f"{path}.tmp", path)
    for folder in {os.path.dirname(path): None for path in files}:
        _sync_folder(folder)


def _sync_folder(path: str) -> None:
    with Brief(path, os.O_RDONLY | os.O_DIRECTORY) as fd:
        os.fsync(fd)


def _even_if_short(call: Callable[[], T]) -> T:
    """Run `call`, which opens a file briefly, and retry it with a spare descriptor if none is free."""
    try:
        while True:
            try:
                return call()
            except OSError as error:
                if not is_out_of_descriptors(error) or not spares.give_up_one():
                    raise
    finally:
        spares.fill()


class RealDirectoryLock:
    """The lock on the directory itself, taken as `flock`, and on PATH/.lock, taken as `flock` and as a POSIX record lock.

    Apache Kafka takes the record lock, and on Linux the two kinds do not see each other. We take both, so that neither another
    Ottla nor an Apache broker can open the directory at the same time. A record lock does not exclude its own process, and is
    lost when the process closes *any* descriptor of the file. So `_locked_here` is checked before the file is opened.
    The directory is locked too, because anybody can delete .lock, and a new file of that name is not locked.
    """

    def __init__(self, path: str) -> None:
        self._key = os.path.realpath(path)
        if self._key in _locked_here:
            raise DirectoryInUse(
                f"log directory {path} is already open in this process (pid {os.getpid()}): "
                "two nodes cannot share a directory; give each its own log.dirs"
            )
        lock_file = os.path.join(path, ".lock")
        self._fds = [os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]
        try:
            _lock_folder(self._fds[0])
            self._fds.append(_open(lock_file, FLAGS[OpenMode.CREATE] | os.O_CLOEXEC))
            if not stat.S_ISREG(os.fstat(self._fds[1]).st_mode):
                raise OSError(errno.EINVAL, "it is a pipe or a device, not a file", lock_file)
            fcntl.flock(self._fds[1], fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(self._fds[1], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            for fd in self._fds:
                os.close(fd)
            if error.errno not in _HELD_ERRORS:
                raise
            raise DirectoryInUse(
                f"log directory {path} is in use by {_holder(lock_file)}: stop that node, or use another folder "
                "(log.dirs; with `ottla up`, --data)"
            ) from None
        os.ftruncate(self._fds[1], 0)
        os.pwrite(self._fds[1], str(os.getpid()).encode("ascii"), 0)
        _locked_here[self._key] = self

    def release(self) -> None:
        """Unlock. Releasing twice is harmless. The file stays, as with Kafka."""
        if _locked_here.get(self._key) is self:
            del _locked_here[self._key]
            os.ftruncate(self._fds[1], 0)
            for fd in self._fds:
                os.close(fd)


def _lock_folder(fd: int) -> None:
    """Lock a folder by its descriptor; `OSError` if another process has locked it."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _HELD_ERRORS:
            raise
        # Some network file systems cannot lock folders: there the file alone has to do.


def _holder(lock_file: str) -> str:
    """The process that holds the lock, as far as its file says."""
    try:
        with Brief(lock_file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW) as fd, open(fd, "rb", closefd=False) as file:
            text = file.read(32).decode("ascii", "replace").strip()
    except OSError:
        text = ""
    return f"process {text}" if text.isdigit() else "another process"
