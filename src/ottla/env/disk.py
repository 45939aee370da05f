"""The disk contract: what the log asks of a file system, and what each call promises after a crash.

Both implementations keep these rules; the tests in tests/unit/env check them:

- Appends, reads and truncations are synchronous: they go to the page cache. A killed process loses none of them.
- After a power loss, only bytes that a completed `File.sync` covered are durable. Any part of later writes may be missing or
  torn. A new name is durable after `Disk.sync_directory` on its folder; `Disk.rename` and `Disk.replace_file` include it.
- `sync`, `rename`, `remove` and similar calls are awaited, because they may wait for the device.
- A handle is opened once and kept. No call on a `File` looks its name up again, so a renamed or removed file stays readable
  through existing handles and ranges.
- Failures of the device surface as `OSError`, never as a wrong result. Reads past the end come back short.
- A handle whose `sync` failed, or whose failed append could not be cut back, is spent: later appends, writes and syncs on it
  fail too. After a failed sync the kernel drops the dirty pages, so a second sync would succeed without writing them.

Paths are absolute strings with `/`. Code on floors 0–3 touches files only through the `Disk` it was handed.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

from ottla.errors import CorruptFile

Buffer = bytes | bytearray | memoryview

FILE_BYTES_MAX = 1 << 28
"""What is read whole is never larger: checkpoints, snapshots of producers."""
SMALL_FILE_BYTES_MAX = 1 << 20
"""For files of a few lines."""


def refuse_large_file(path: str, size_bytes: int, bytes_max: int) -> None:
    """Raise `CorruptFile` for a file that is too large to be read whole: it would take all memory, and nobody learn why."""
    if size_bytes > bytes_max:
        what = f"the file has {size_bytes:,} bytes, and at most {bytes_max:,} can be right"
        raise CorruptFile(path, bytes_max, what, "Restore it from a copy, or remove it if it is not Ottla's")


class OpenMode(Enum):
    """How a file is opened."""

    READ = "read"
    """Read only; the file must exist."""
    WRITE = "write"
    """Read and write; the file must exist."""
    CREATE = "create"
    """Read and write; made if missing, kept if there."""


class FileRange(Protocol):
    """`length` bytes of a file from `position`, to be sent or read later. Keeps the file's bytes reachable until dropped."""

    @property
    def position(self) -> int: ...
    @property
    def length(self) -> int: ...
    def __len__(self) -> int: ...
    def read(self, start: int = 0, length: int | None = None) -> bytes:
        """The bytes themselves, or `length` of them from `start`. `OSError` if the file has become shorter than the range."""
        ...

    def is_resident(self) -> bool:
        """Whether the bytes are in memory, so that sending them does not wait for the device.

        Probes only a few of the bytes and never blocks. Not the first: who makes a range has read its first header. True
        also where the operating system cannot answer.
        """
        ...


class File(Protocol):
    """One open file."""

    @property
    def path(self) -> str:
        """The name the file was opened by; a later rename does not change it."""
        ...

    @property
    def size(self) -> int:
        """The file's size in bytes: its size when opened, plus this handle's own changes. Makes no system call."""
        ...

    def append(self, *parts: Buffer) -> int:
        """Write `parts` at the end, all of them or raise; returns the position of the first byte.

        After a failed append the file is cut back to its old size, as far as the device still allows.
        """
        ...

    def write_at(self, position: int, data: Buffer) -> None:
        """Overwrite or extend from `position`."""
        ...

    def read(self, position: int, length: int) -> bytes:
        """Up to `length` bytes from `position`; fewer only at the end of the file."""
        ...

    def range(self, position: int, length: int) -> FileRange:
        """A range of this file that outlives `close`, renames and removal."""
        ...

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes. `ValueError` if `size` is beyond the end."""
        ...

    async def sync(self) -> None:
        """Wait until everything written so far would survive a power loss."""
        ...

    def note_durable(self) -> None:
        """The file's bytes are durable: the process that wrote them has synced them. `sync` waits only for later changes."""
        ...

    def follow(self, path: str) -> None:
        """The file was renamed to `path`. Only a handle that has not been opened yet needs to know."""
        ...

    def close(self) -> None:
        """Give the handle back. Ranges taken before stay readable. Closing twice is harmless."""
        ...


class DiskSpace(NamedTuple):
    """The size of a folder's file system, and how much of it this process can still use."""

    total_bytes: int
    usable_bytes: int


class DirectoryLock(Protocol):
    """The exclusive hold of one process on one log directory."""

    def release(self) -> None: ...


class Disk(Protocol):
    """A file system."""

    def open(self, path: str, mode: OpenMode) -> File:
        """`FileNotFoundError` where the mode needs the file to exist and it does not."""
        ...

    def open_later(self, path: str, size: int) -> File:
        """A handle of an existing file of `size` bytes, for reading and writing. The file is opened when it is first used.

        Until then it is found by its name, so `File.follow` must be called when it is renamed.
        """
        ...

    def can_open(self, files: int, for_growth: bool = False) -> bool:
        """Whether `files` more files can be opened now, with a reserve left for work on the files already open.

        `for_growth` (new partitions) leaves a larger reserve than work on existing partitions. Never blocks.
        """
        ...

    def is_short_of_descriptors(self) -> bool:
        """Whether files use more than half of the descriptors that they may have. Costs nothing."""
        ...

    def absolute(self, path: str) -> str:
        """`path` made absolute against the working directory. Symbolic links are not resolved."""
        ...

    def exists(self, path: str) -> bool: ...
    def is_directory(self, path: str) -> bool: ...
    def list_directory(self, path: str) -> list[str]:
        """Names in a folder, sorted, without `.` and `..`."""
        ...

    def list_files(self, path: str) -> dict[str, int]:
        """The names in a folder, sorted, with the size of each file; -1 for folders."""
        ...

    def make_directory(self, path: str) -> None:
        """Make a folder and its missing parents; fine if it is there."""
        ...

    def modified_ms(self, path: str) -> int:
        """When the file's bytes last changed, in milliseconds since the epoch."""
        ...

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        """Set the time that `modified_ms` returns. Compaction gives a new segment the age of the ones it replaces."""
        ...

    def read_file(self, path: str, bytes_max: int = FILE_BYTES_MAX) -> bytes:
        """The whole of a small file. `CorruptFile` if it is larger than `bytes_max`, or no regular file."""
        ...

    def lock_directory(self, path: str) -> DirectoryLock:
        """Take `path`/.lock, or raise `DirectoryInUse`."""
        ...

    async def warm(self, records: FileRange) -> None:
        """Read a range into the page cache, off the loop, so that sending it does not block."""
        ...

    async def replace_file(self, path: str, data: Buffer) -> None:
        """Replace `path` atomically: write `path`.tmp, sync it, rename it over `path`, sync the folder."""
        ...

    async def replace_files(self, files: Mapping[str, Buffer]) -> None:
        """`replace_file` for many files, with shared waits for the device. If it fails, any subset may be replaced."""
        ...

    async def rename(self, old: str, new: str) -> None:
        """Rename atomically, over `new` if it is there, and sync the folder."""
        ...

    def rename_now(self, old: str, new: str) -> None:
        """Rename synchronously, on the caller's thread: for a step that must not interleave with other code on the loop.

        It survives a killed process. A power loss may undo it until `sync_directory` was awaited on the parent folder.
        """
        ...

    async def remove(self, path: str) -> None:
        """Remove a file; fine if it is gone."""
        ...

    async def remove_directory(self, path: str) -> None:
        """Remove a folder and all that is in it; fine if it is gone."""
        ...

    async def sync_directory(self, path: str) -> None:
        """Wait until the names in a folder would survive a power loss."""
        ...

    async def sync_all(self, files: Sequence[File], folders: Sequence[str]) -> None:
        """`File.sync` for many files, then `sync_directory` for many folders, with shared waits for the device.

        If one fails, none of them counts as synced.
        """
        ...

    async def space(self, path: str) -> DiskSpace:
        """How much room there is where the folder `path` lies."""
        ...
