"""Open files of the real disk: raw descriptors, positioned reads and writes, no buffering in the process.

The handle, its ranges and a running sync share one descriptor, which is closed when the last of them drops it. So a range
waiting to be sent, or a thread inside fsync, never finds its number reused for another file.

Handles belong to one event loop; only the fsync itself runs in a worker thread.
"""

import errno
import fcntl
import os
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from ottla.env.disk import Buffer
from ottla.env.work import Workers

PARTS_MAX = 512
"""Parts handed to one pwritev; the system's own limit (IOV_MAX) is 1024 on Linux and macOS."""

PROBE_BYTES = 512 << 10
"""`is_resident` probes one byte of a range per so many bytes, and its last byte."""

WARM_CHUNK_BYTES = 256 << 10

NOT_OPENED = -2
"""In place of the descriptor of a file that is opened when it is first used; -1: the handle was closed."""

RWF_NOWAIT: int | None = getattr(os, "RWF_NOWAIT", None)
F_FULLFSYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)


def sync_descriptor(fd: int) -> None:
    """Wait until the bytes of `fd` are on the device.

    On Linux fdatasync writes the data and the size, but not the times. On macOS fsync stops at the drive's own cache, so we use
    F_FULLFSYNC, as Java's runtime does for Apache Kafka, and fall back to fsync on file systems that do not support it.
    """
    if F_FULLFSYNC is not None:
        try:
            fcntl.fcntl(fd, F_FULLFSYNC)
        except OSError:
            os.fsync(fd)
    elif hasattr(os, "fdatasync"):
        os.fdatasync(fd)
    else:
        os.fsync(fd)


class Descriptor:
    """A file descriptor that is closed when nothing refers to it any more."""

    __slots__ = ("fd",)
    open_count: ClassVar[int] = 0
    """How many are open in this process. Approximate if several threads open files, since the count is not locked."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        Descriptor.open_count += 1

    def __del__(self, close=os.close) -> None:  # type: ignore[no-untyped-def]  # bound early: `os` may be gone at exit
        Descriptor.open_count -= 1
        try:
            close(self.fd)
        except OSError:
            pass  # nothing to do here: what must be durable was synced before


class RealFileRange:
    """A range of a file that keeps its descriptor open. `fileno`, `position` and `length` are arguments of `os.sendfile`."""

    __slots__ = ("_descriptor", "length", "position")

    def __init__(self, descriptor: Descriptor, position: int, length: int) -> None:
        self._descriptor = descriptor
        self.position = position
        self.length = length

    def __len__(self) -> int:
        return self.length

    def fileno(self) -> int:
        return self._descriptor.fd

    def read(self, start: int = 0, length: int | None = None) -> bytes:
        wanted = self.length - start if length is None else length
        data = read_exactly(self._descriptor.fd, self.position + start, wanted)
        if len(data) < wanted:
            raise OSError(
                errno.EIO, f"the file has become shorter than the range of {self.length} bytes at {self.position} taken from it"
            )
        return data

    def is_resident(self) -> bool:
        if RWF_NOWAIT is None:
            return True
        fd, last = self._descriptor.fd, self.position + self.length - 1
        try:
            os.preadv(fd, _PROBE, last, RWF_NOWAIT)
            for position in range(self.position + PROBE_BYTES, last, PROBE_BYTES):
                os.preadv(fd, _PROBE, position, RWF_NOWAIT)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):  # the file system does not support RWF_NOWAIT
                raise
        return True


_PROBE = [bytearray(1)]


def warm(records: RealFileRange) -> None:
    """Read all of a range and discard the bytes, so that they are in the page cache."""
    chunk = bytearray(min(WARM_CHUNK_BYTES, records.length))
    position, end = records.position, records.position + records.length
    while position < end:
        got = os.preadv(records.fileno(), [memoryview(chunk)[: end - position]], position)
        if not got:
            break
        position += got


def read_exactly(fd: int, position: int, length: int) -> bytes:
    """`length` bytes from `position`, fewer only at the end of the file. One system call unless a read comes back short."""
    data = os.pread(fd, length, position)
    if len(data) == length or not data:
        return data
    parts = [data]
    got = len(data)
    while got < length:
        data = os.pread(fd, length - got, position + got)
        if not data:
            break
        parts.append(data)
        got += len(data)
    return b"".join(parts)


def write_all(fd: int, position: int, parts: Sequence[Buffer]) -> int:
    """Write all of `parts` from `position`, going on after partial writes; returns the position after the last byte."""
    for first in range(0, len(parts), PARTS_MAX):
        chunk = parts[first : first + PARTS_MAX]
        wanted = sum(memoryview(part).nbytes for part in chunk)
        written = os.pwritev(fd, chunk, position)
        position += written
        if written < wanted:
            rest = memoryview(b"".join(chunk))[written:]
            while rest:
                written = os.pwrite(fd, rest, position)
                position += written
                rest = rest[written:]
    return position


class Unsynced(NamedTuple):
    """The state of a file when its sync begins."""

    descriptor: Descriptor
    size: int
    rewrites: int


class RealFile:
    """`File` over a raw descriptor."""

    __slots__ = ("_descriptor", "_fd", "_rewrites", "_spent", "_synced_size", "_workers", "path", "size")

    def __init__(self, fd: int, path: str, size: int, workers: Workers) -> None:
        self._descriptor: Descriptor | None = None if fd == NOT_OPENED else Descriptor(fd)
        self._fd = fd
        self._workers = workers
        self._spent: OSError | None = None
        self._rewrites = 0  # counts changes other than appends
        self._synced_size = -1  # bytes beyond it are unsynced; -1: any byte may be, also those written before this handle
        self.path = path
        self.size = size

    def note_new(self) -> None:
        """The file was just created, so while it is empty there is nothing to sync."""
        self._synced_size = 0

    def append(self, *parts: Buffer) -> int:
        if self._spent is not None:
            raise self._refusal()
        start = self.size
        try:
            if len(parts) == 1:
                part = parts[0]
                written = os.pwrite(self._fd, part, start)
                if written != len(part):
                    written += write_all(self._fd, start + written, [memoryview(part)[written:]]) - start - written
                self.size = start + written
            else:
                self.size = write_all(self._fd, start, parts)
        except OSError as error:
            if self._fd == NOT_OPENED:
                self._held()
                return self.append(*parts)
            self._cut_back(start, error)
            raise self._named(error) from None
        return start

    def _cut_back(self, size: int, cause: OSError) -> None:
        """Truncate away what a failed append left. If that fails too, the handle is spent: no append may follow the remains."""
        if self._fd < 0:
            return
        self._note_rewrite()
        try:
            os.ftruncate(self._fd, size)
        except OSError:
            self._spent = cause

    def _note_rewrite(self) -> None:
        self._rewrites += 1
        self._synced_size = -1

    def write_at(self, position: int, data: Buffer) -> None:
        if self._spent is not None:
            raise self._refusal()
        self._note_rewrite()
        self._held()
        try:
            self.size = max(self.size, write_all(self._fd, position, [data]))
        except OSError as error:
            raise self._named(error) from None

    def read(self, position: int, length: int) -> bytes:
        try:
            return read_exactly(self._fd, position, length)
        except OSError as error:
            if self._fd == NOT_OPENED:
                return read_exactly(self._held().fd, position, length)
            raise self._named(error) from None

    def range(self, position: int, length: int) -> RealFileRange:
        return RealFileRange(self._held(), position, length)

    def truncate(self, size: int) -> None:
        if size > self.size or size < 0:
            raise ValueError(f"cannot cut {self.path} to {size} bytes: it has {self.size}")
        if self._spent is not None:
            raise self._refusal()
        if size != self.size:
            self._note_rewrite()
        if self._fd == NOT_OPENED:
            self._held()
        try:
            os.ftruncate(self._fd, size)
        except OSError as error:
            raise self._named(error) from None
        self.size = size

    async def sync(self) -> None:
        if (unsynced := self.unsynced()) is None:
            return
        try:
            await self._workers.run(lambda: sync_descriptor(unsynced.descriptor.fd))
        except OSError as error:
            raise self.sync_failed(error) from None
        self.note_synced(unsynced)

    def note_durable(self) -> None:
        self._synced_size = self.size

    def unsynced(self) -> "Unsynced | None":
        """What a sync has to wait for; None: everything is durable. The caller syncs it, then calls `note_synced`."""
        if self._spent is not None:
            raise self._refusal()
        if self.size == self._synced_size and self._fd != -1:
            return None
        return Unsynced(self._held(), self.size, self._rewrites)

    def note_synced(self, done: "Unsynced") -> None:
        if done.rewrites == self._rewrites:
            self._synced_size = max(done.size, self._synced_size)

    def sync_failed(self, error: OSError) -> OSError:
        """Note that nothing more may be written; returns the error to raise."""
        self._spent = error
        return self._named(error)

    def follow(self, path: str) -> None:
        if self._fd == NOT_OPENED:
            self.path = path

    def close(self) -> None:
        self._descriptor = None
        self._fd = -1

    def _held(self) -> Descriptor:
        if self._descriptor is None:
            if self._fd != NOT_OPENED:
                raise OSError(errno.EBADF, "the file handle was closed", self.path)
            self._descriptor = Descriptor(os.open(self.path, os.O_RDWR | os.O_CLOEXEC))
            self._fd = self._descriptor.fd
        return self._descriptor

    def _refusal(self) -> OSError:
        assert self._spent is not None
        return OSError(
            self._spent.errno,
            f"an earlier write or sync failed, so the file is not written to: {self._spent.strerror}",
            self.path,
        )

    def _named(self, error: OSError) -> OSError:
        """`error` with the file's path, which errors of calls on descriptors lack."""
        text = "the file handle was closed" if self._fd < 0 else error.strerror
        return OSError(error.errno, text, self.path)
