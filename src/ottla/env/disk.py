"""The disk contract: what the log asks of a file system, and what each call promises after a crash.

Rules that both implementations keep, and that the tests in tests/unit/env hold them to:

- Appends, reads and truncations are synchronous: they go to the page cache. A killed process loses none of them.
- After a power loss, only what `File.sync` had returned for is sure to be there; of what was written later
  any part may be missing or torn. A new name is sure only after `Disk.sync_directory` on its folder; `Disk.rename` and
  `Disk.replace_file` include it.
- `sync`, `rename`, `remove` and the like are awaited, since they may wait for the device.
- A handle is opened once and kept; no call on a `File` looks its name up again, so a renamed or removed file goes on
  being readable through handles and ranges that were there before.
- Failures of the device surface as `OSError`, never as a wrong result. Reads past the end come back short.
- A handle whose `sync` failed, or whose failed append could not be cut back, is spent: later appends, writes and syncs on it
  fail too. The kernel forgets the pages a failed sync was about, so a second sync that succeeds would be a lie.

Paths are plain absolute strings with `/`. Only floor 0–3 code that was handed a `Disk` may touch files.
"""

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple, Protocol

Buffer = bytes | bytearray | memoryview


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
    def read(self) -> bytes:
        """The bytes themselves. `OSError` if the file has become shorter than the range."""
        ...

    def is_resident(self) -> bool:
        """Whether the bytes are in memory, as far as a look at a few of them can tell: then sending them waits for no device.

        Never waits itself. True also where the system does not tell.
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
        """The file's size in bytes, without asking the file system: at opening, and as this handle changed it since."""
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
        """Cut the file to `size` bytes; a size beyond the end is an error of the caller (`ValueError`)."""
        ...

    async def sync(self) -> None:
        """Wait until everything written so far would survive a power loss."""
        ...

    def close(self) -> None:
        """Give the handle back. Ranges taken before stay readable. Closing twice is harmless."""
        ...


class DiskSpace(NamedTuple):
    """How large the file system of a folder is, and how much of it this process could still fill."""

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

    def can_open(self, files: int, for_growth: bool = False) -> bool:
        """Whether so many more files can be opened now, besides what has to be kept for the work on those that are open.

        For growth, which new partitions are, more is kept than for what goes on with the old. Waits for nothing.
        """
        ...

    def absolute(self, path: str) -> str:
        """`path` from the root, if it is told from where the process is; links in it are left as they are."""
        ...

    def exists(self, path: str) -> bool: ...
    def is_directory(self, path: str) -> bool: ...
    def list_directory(self, path: str) -> list[str]:
        """Names in a folder, sorted, without `.` and `..`."""
        ...

    def make_directory(self, path: str) -> None:
        """Make a folder and its missing parents; fine if it is there."""
        ...

    def modified_ms(self, path: str) -> int:
        """When the file's bytes last changed, in milliseconds since the epoch."""
        ...

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        """Set what `modified_ms` tells; compaction hands the age of the old segments on to the new one."""
        ...

    def read_file(self, path: str) -> bytes:
        """The whole of a small file."""
        ...

    def lock_directory(self, path: str) -> DirectoryLock:
        """Take `path`/.lock, or raise `DirectoryInUse`."""
        ...

    async def warm(self, records: FileRange) -> None:
        """Read a range once, off the loop, so that its bytes are in memory when they are sent."""
        ...

    async def replace_file(self, path: str, data: Buffer) -> None:
        """Write `data` to `path`.tmp, sync it, rename it over `path`, sync the folder: old or new, never a mixture."""
        ...

    async def replace_files(self, files: Mapping[str, Buffer]) -> None:
        """`replace_file` for many, which wait for the device together. If it fails, any of them may be there or not."""
        ...

    async def rename(self, old: str, new: str) -> None:
        """Rename atomically, over `new` if it is there, and sync the folder."""
        ...

    def rename_now(self, old: str, new: str) -> None:
        """Rename at once, on the caller's thread: for the one step that must not be under way while other code runs.

        A killed process keeps it. A power loss may undo it until `sync_directory` was awaited on the folder that holds it.
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

    async def space(self, path: str) -> DiskSpace:
        """How much room there is where the folder `path` lies."""
        ...
