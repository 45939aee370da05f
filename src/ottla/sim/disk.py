"""`MemoryDisk`: a disk in memory that implements `env/disk.py` and can fail in every way the contract allows.

- `crash(power_loss=…)` ends this disk: it and all its handles raise `DiskCrashed` from then on. It returns the disk that the
  next process finds. A kill loses nothing. A power loss keeps what was synced and, of the rest, what chance (`random`) leaves:
  see `Inode` for bytes and `Names` for names.
- `crash_before(n)` lets n more changing calls succeed and then ends the disk, so that a test can stop a routine at each of its
  steps. An append that meets the end leaves a part of its bytes. `on_crash`, if set, is called at that moment, so that the
  process ends before it can do anything else.
- `fail(...)` makes matching calls fail (`Fault`); `fail_directory` breaks a folder permanently.
- `counts` counts calls and faults, so that a test can assert that its faults happened.
- `pause`, if given, is awaited at the start of every awaited call, so that other tasks can interleave.

Not thread-safe: one event loop.
"""

import errno
import os
import posixpath
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from random import Random

from ottla.env import FILE_BYTES_MAX, Buffer, Clock, Disk, DiskSpace, File, FileRange, OpenMode, refuse_large_file
from ottla.errors import DirectoryInUse
from ottla.sim.world import ManualClock


class DiskCrashed(OSError):
    """The machine of this disk has crashed: the disk and its handles are dead. Use the disk that `crash()` returned."""

    def __init__(self, path: str, in_this_call: bool = False) -> None:
        self.in_this_call = in_this_call
        super().__init__(errno.EIO, "the simulated machine has crashed", path)


@dataclass
class Fault:
    """Fails calls of `operation` on paths that match `path`: lets `skip` of them pass, then fails `times` (None: all).

    `keep_bytes` makes an append fail half-way: that many bytes have reached the file, and are cut back unless
    `cut_back_fails`.

    Operations: open, exists, read, warm, append, write, truncate, sync, list, make_directory, set_modified, lock, replace,
    rename, remove, remove_directory, sync_directory, space; "*" means any of them. Paths are matched by shell patterns.
    """

    operation: str = "*"
    path: str = "*"
    error: int = errno.EIO
    skip: int = 0
    times: int | None = 1
    keep_bytes: int = 0
    cut_back_fails: bool = False
    hits: int = 0
    """How many calls have failed, so that tests can assert that any did."""

    def strikes(self, operation: str, path: str) -> bool:
        """Whether this call fails; counts it."""
        if self.operation not in ("*", operation) or not fnmatchcase(path, self.path):
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        if self.times is not None and self.hits >= self.times:
            return False
        self.hits += 1
        return True

    def as_error(self, path: str) -> OSError:
        return OSError(self.error, f"{os.strerror(self.error)} (injected)", path)


PAGE_BYTES = 4096


class Inode:
    """The bytes of one simulated file, and what a power loss may leave of them.

    Besides the current bytes, an inode keeps what it needs to return to the last sync: the size then, and the old content of
    every page changed below that size. So appending a gigabyte in small pieces with a sync after each costs no copies.

    A power loss keeps what was synced. Unsynced changes of a file have one of four fates: lost (nothing newer than the sync),
    kept (all of it), prefix (the file ends somewhere between the two sizes) or torn (every changed page is old or new
    independently; a new page that was not written reads as zeros; the size is any in between).
    """

    __slots__ = ("data", "modified_ms", "old_pages", "synced_size")

    def __init__(self, modified_ms: int) -> None:
        self.data = bytearray()
        self.modified_ms = modified_ms
        self.synced_size = 0
        self.old_pages: dict[int, bytes] = {}

    def write(self, position: int, data: bytes | bytearray | memoryview) -> None:
        end = position + len(data)
        self._remember(position, end)
        if position > len(self.data):
            self.data.extend(bytes(position - len(self.data)))
        self.data[position:end] = data

    def truncate(self, size: int) -> None:
        self._remember(size, len(self.data))
        del self.data[size:]

    def _remember(self, start: int, end: int) -> None:
        """Save the synced content of the pages of bytes `start`..`end` before they change."""
        if start >= self.synced_size:
            return
        for page in range(start // PAGE_BYTES, -(-min(end, self.synced_size) // PAGE_BYTES)):
            if page not in self.old_pages:
                self.old_pages[page] = bytes(self.data[page * PAGE_BYTES : min((page + 1) * PAGE_BYTES, self.synced_size)])

    def sync(self) -> None:
        self.synced_size = len(self.data)
        self.old_pages.clear()

    @property
    def is_synced(self) -> bool:
        return not self.old_pages and self.synced_size == len(self.data)

    def synced_bytes(self) -> bytearray:
        """The content as of the last sync."""
        old = bytearray(self.data[: self.synced_size])
        old.extend(bytes(self.synced_size - len(old)))
        for page, content in self.old_pages.items():
            old[page * PAGE_BYTES : page * PAGE_BYTES + len(content)] = content
        return old

    def lose_power(self, random: Random, counts: Counter[str]) -> None:
        """Change to a state that a power loss may leave, chosen by `random`."""
        if self.is_synced:
            return
        fate = random.choice(("lost", "kept", "prefix", "torn"))
        counts[fate] += 1
        if fate != "kept":
            old, new = self.synced_bytes(), self.data
            if len(new) < len(old) and fate == "lost":
                counts["truncation_undone"] += 1
            if fate == "lost":
                self.data = old
            elif fate == "prefix":
                size = random.randint(min(len(old), len(new)), max(len(old), len(new)))
                self.data = (new + old[len(new) :])[:size]
            else:
                self.data = self._torn(old, new, random)
        self.sync()

    def _torn(self, old: bytearray, new: bytearray, random: Random) -> bytearray:
        low, high = sorted((len(old), len(new)))
        size = random.choice((len(old), len(new), random.randint(low, high)))
        torn = bytearray(size)
        for start in range(0, size, PAGE_BYTES):
            end = min(start + PAGE_BYTES, size)
            source = random.choice((old, new))
            piece = source[start:end]
            torn[start : start + len(piece)] = piece
        return torn


Key = tuple["Folder", str]


class Folder:
    """A directory: names → files and folders."""

    __slots__ = ("entries",)

    def __init__(self) -> None:
        self.entries: dict[str, Inode | Folder] = {}


class Change:
    """Names changed together and not yet synced: for each, what it named at the last sync."""

    __slots__ = ("before", "kind")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.before: dict[Key, Inode | Folder | None] = {}


class Names:
    """The folders and names of the simulated disk, and which of them survive a power loss.

    Unsynced changes are groups of (folder, name) keys that a power loss keeps or undoes together. A new or removed name is a
    group of its own. A rename joins the old and the new name, so it is never half done. Chance decides for each group.
    """

    def __init__(self) -> None:
        self.root = Folder()
        self._changes: dict[Key, Change] = {}

    def find(self, path: str) -> Inode | Folder | None:
        node: Inode | Folder | None = self.root
        for name in path.strip("/").split("/"):
            if not name:
                continue
            if not isinstance(node, Folder):
                return None
            node = node.entries.get(name)
        return node

    def folder_of(self, path: str) -> Folder:
        """The folder that holds, or would hold, `path`."""
        node = self.find(posixpath.dirname(path))
        if not isinstance(node, Folder):
            raise FileNotFoundError(2, "No such file or directory", path)
        return node

    def set(self, kind: str, *steps: tuple[str, Inode | Folder | None]) -> None:
        """Make each path of `steps` name the node beside it (None: nothing), as one change of `kind`."""
        change = Change(kind)
        for path, node in steps:
            folder, name = self.folder_of(path), posixpath.basename(path)
            key = (folder, name)
            earlier = self._changes.get(key)
            if earlier is not None:
                if earlier.kind == "rename":
                    change.kind = "rename"
                for joined, before in earlier.before.items():
                    change.before.setdefault(joined, before)
                    self._changes[joined] = change
            change.before.setdefault(key, folder.entries.get(name))
            self._changes[key] = change
            if node is None:
                folder.entries.pop(name, None)
            else:
                folder.entries[name] = node

    def sync(self, folder: Folder) -> None:
        """Make every change that touches `folder` durable."""
        for change in [change for (owner, _), change in self._changes.items() if owner is folder]:
            for key in change.before:
                self._changes.pop(key, None)

    def lose_power(self, random: Random, counts: Counter[str]) -> None:
        """Keep or undo each unsynced change."""
        changes = {id(change): change for change in self._changes.values()}
        for change in changes.values():
            if random.random() < 0.5:
                continue
            counts[f"{change.kind}_undone"] += 1
            for (folder, name), before in change.before.items():
                if before is None:
                    folder.entries.pop(name, None)
                else:
                    folder.entries[name] = before
        self._changes.clear()

    def files(self) -> list[tuple[str, Inode]]:
        """Every file with its path, in a fixed order."""
        found: list[tuple[str, Inode]] = []
        waiting: list[tuple[str, Folder]] = [("", self.root)]
        while waiting:
            path, folder = waiting.pop()
            for name, node in sorted(folder.entries.items()):
                if isinstance(node, Folder):
                    waiting.append((f"{path}/{name}", node))
                else:
                    found.append((f"{path}/{name}", node))
        return found


Pause = Callable[[], Awaitable[None]]

SPACE_BYTES = 1 << 40
"""The total size that `space` reports. It is not enforced."""


class MemoryDisk:
    """`Disk` in memory, with faults. Only the root folder exists at first."""

    def __init__(self, random: Random | None = None, clock: Clock | None = None, pause: Pause | None = None) -> None:
        self.random = random if random is not None else Random(0)
        self.clock: Clock = clock if clock is not None else ManualClock()
        self.pause = pause
        self.counts: Counter[str] = Counter()
        self.faults: list[Fault] = []
        self.names = Names()
        self.crashed = False
        self.on_crash: Callable[[], None] | None = None
        self.is_cold = False
        """Whether `is_resident` of ranges is False."""
        self.files_left: int | None = None
        """How many more files `can_open` allows; None: any number. `open` does not enforce it."""
        self.is_short = False
        """What `is_short_of_descriptors` returns."""
        self._calls_left: int | None = None
        self._failed_directories: set[str] = set()
        self._locks: set[str] = set()

    # Faults

    def fail(self, operation: str = "*", path: str = "*", error: int = errno.EIO, **how: int | bool | None) -> Fault:
        """Make calls fail; `how` has the other fields of `Fault`. Returns the fault, so that its `hits` can be read."""
        fault = Fault(operation, path, error, **how)  # type: ignore[arg-type]  # checked by the dataclass's own fields
        self.faults.append(fault)
        return fault

    def fail_directory(self, path: str) -> None:
        """From now on every call on `path` and below it fails with EIO."""
        self._failed_directories.add(path)

    def crash_before(self, calls: int) -> None:
        """Let `calls` more changing calls succeed; the machine crashes in the next one."""
        self._calls_left = calls

    def crash(self, power_loss: bool) -> "MemoryDisk":
        """End this disk and return the one that the next process finds."""
        self.crashed = True
        after = MemoryDisk(self.random, self.clock, self.pause)
        after.counts = self.counts
        after.names = self.names
        after.counts["power_losses" if power_loss else "kills"] += 1
        if power_loss:
            self.names.lose_power(self.random, self.counts)
            for _, inode in self.names.files():
                inode.lose_power(self.random, self.counts)
        return after

    def check(self, operation: str, path: str, changes: bool = True) -> Fault | None:
        """Count a call and raise the fault that it meets. A fault that lets part of an append through is returned instead."""
        if self.crashed:
            raise DiskCrashed(path)
        if changes and self._calls_left is not None:
            if self._calls_left == 0:
                self.crashed = True
                if self.on_crash is not None:
                    self.on_crash()
                raise DiskCrashed(path, in_this_call=True)
            self._calls_left -= 1
        self.counts[operation] += 1
        for folder in self._failed_directories:
            if path == folder or path.startswith(folder + "/"):
                self.counts["failed"] += 1
                raise OSError(errno.EIO, "the simulated directory has failed", path)
        for fault in self.faults:
            if fault.strikes(operation, path):
                self.counts["failed"] += 1
                if fault.keep_bytes:
                    return fault
                raise fault.as_error(path)
        return None

    async def _begin(self, operation: str, path: str) -> None:
        if self.pause is not None:
            await self.pause()
        self.check(operation, path)

    # Disk

    def open(self, path: str, mode: OpenMode) -> "MemoryFile":
        node = self.names.find(path)
        if isinstance(node, Folder):
            raise IsADirectoryError(errno.EISDIR, "Is a directory", path)
        self.check("open", path, changes=node is None and mode is OpenMode.CREATE)
        if node is None:
            if mode is not OpenMode.CREATE:
                raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
            node = Inode(self.clock.now_ms())
            self.names.set("create", (path, node))
        return MemoryFile(self, node, path, writable=mode is not OpenMode.READ)

    def open_later(self, path: str, size: int) -> "MemoryFile":
        return self.open(path, OpenMode.WRITE)

    def can_open(self, files: int, for_growth: bool = False) -> bool:
        return self.files_left is None or self.files_left >= files

    def is_short_of_descriptors(self) -> bool:
        return self.is_short

    def absolute(self, path: str) -> str:
        return posixpath.normpath(posixpath.join("/", path))

    def exists(self, path: str) -> bool:
        self.check("exists", path, changes=False)
        return self.names.find(path) is not None

    def is_directory(self, path: str) -> bool:
        self.check("exists", path, changes=False)
        return isinstance(self.names.find(path), Folder)

    def list_directory(self, path: str) -> list[str]:
        self.check("list", path, changes=False)
        return sorted(self._folder(path).entries)

    def list_files(self, path: str) -> dict[str, int]:
        self.check("list", path, changes=False)
        found = sorted(self._folder(path).entries.items())
        return {name: len(node.data) if isinstance(node, Inode) else -1 for name, node in found}

    def make_directory(self, path: str) -> None:
        self.check("make_directory", path)
        parts = [part for part in path.split("/") if part]
        for end in range(1, len(parts) + 1):
            here = "/" + "/".join(parts[:end])
            node = self.names.find(here)
            if isinstance(node, Inode):
                raise FileExistsError(errno.EEXIST, "File exists", here)
            if node is None:
                self.names.set("create", (here, Folder()))

    def modified_ms(self, path: str) -> int:
        self.check("exists", path, changes=False)
        node = self._existing(path)
        return node.modified_ms if isinstance(node, Inode) else 0

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        self.check("set_modified", path)
        node = self._existing(path)
        if isinstance(node, Inode):
            node.modified_ms = modified_ms

    def read_file(self, path: str, bytes_max: int = FILE_BYTES_MAX) -> bytes:
        file = self.open(path, OpenMode.READ)
        refuse_large_file(path, file.size, bytes_max)
        return file.read(0, file.size)

    def lock_directory(self, path: str) -> "MemoryDirectoryLock":
        self.check("lock", path)
        self._folder(path)
        if path in self._locks:
            raise DirectoryInUse(f"log directory {path} is in use: stop the other node, or point log.dirs elsewhere")
        if self.names.find(f"{path}/.lock") is None:
            self.names.set("create", (f"{path}/.lock", Inode(self.clock.now_ms())))
        self._locks.add(path)
        return MemoryDirectoryLock(self._locks, path)

    async def warm(self, records: FileRange) -> None:
        if self.pause is not None:
            await self.pause()
        assert isinstance(records, MemoryFileRange)
        self.check("warm", records.path, changes=False)

    async def replace_file(self, path: str, data: Buffer) -> None:
        draft = f"{path}.tmp"
        await self._begin("replace", path)
        node = Inode(self.clock.now_ms())
        self.names.set("create", (draft, node))
        node.write(0, data)
        await self._begin("sync", draft)
        node.sync()
        await self._begin("rename", draft)
        self.names.set("rename", (draft, None), (path, node))
        await self._begin("sync_directory", posixpath.dirname(path))
        self.names.sync(self.names.folder_of(path))

    async def replace_files(self, files: Mapping[str, Buffer]) -> None:
        for path, data in files.items():
            await self.replace_file(path, data)

    def rename_now(self, old: str, new: str) -> None:
        self.check("rename", old)
        self._rename(old, new)

    def _rename(self, old: str, new: str) -> None:
        node, target = self._existing(old), self.names.find(new)
        if isinstance(target, Folder) and (target.entries or isinstance(node, Inode)):
            raise OSError(errno.ENOTEMPTY, "Directory not empty", new)
        self.names.set("rename", (old, None), (new, node))

    async def rename(self, old: str, new: str) -> None:
        await self._begin("rename", old)
        self._rename(old, new)
        await self._begin("sync_directory", posixpath.dirname(new))
        self.names.sync(self.names.folder_of(new))

    async def remove(self, path: str) -> None:
        await self._begin("remove", path)
        node = self.names.find(path)
        if isinstance(node, Folder):
            raise IsADirectoryError(errno.EISDIR, "Is a directory", path)
        if node is not None:
            self.names.set("remove", (path, None))

    async def remove_directory(self, path: str) -> None:
        node = self.names.find(path)
        if isinstance(node, Folder):
            for name in sorted(node.entries):
                below = f"{path}/{name}"
                if isinstance(node.entries[name], Folder):
                    await self.remove_directory(below)
                else:
                    await self.remove(below)
        await self._begin("remove_directory", path)
        if node is not None:
            self.names.set("remove", (path, None))

    async def sync_directory(self, path: str) -> None:
        await self._begin("sync_directory", path)
        self.names.sync(self._folder(path))

    async def sync_all(self, files: Sequence[File], folders: Sequence[str]) -> None:
        for file in files:
            await file.sync()
        for folder in folders:
            await self.sync_directory(folder)

    async def space(self, path: str) -> DiskSpace:
        if self.pause is not None:
            await self.pause()
        self.check("space", path, changes=False)
        self._folder(path)
        return DiskSpace(SPACE_BYTES, SPACE_BYTES - sum(len(inode.data) for _, inode in self.names.files()))

    def _existing(self, path: str) -> Inode | Folder:
        node = self.names.find(path)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        return node

    def _folder(self, path: str) -> Folder:
        node = self._existing(path)
        if not isinstance(node, Folder):
            raise NotADirectoryError(errno.ENOTDIR, "Not a directory", path)
        return node


class MemoryDirectoryLock:
    """`DirectoryLock`. Locks end with the process, so the disk after a crash has none."""

    def __init__(self, locks: set[str], path: str) -> None:
        self._locks = locks
        self._path = path

    def release(self) -> None:
        self._locks.discard(self._path)


class MemoryFileRange:
    """`FileRange` of a simulated file."""

    __slots__ = ("_disk", "_inode", "length", "path", "position")

    def __init__(self, disk: MemoryDisk, inode: Inode, path: str, position: int, length: int) -> None:
        self._disk = disk
        self._inode = inode
        self.path = path
        self.position = position
        self.length = length

    def __len__(self) -> int:
        return self.length

    def read(self, start: int = 0, length: int | None = None) -> bytes:
        if self._disk.crashed:
            raise DiskCrashed("a range")
        wanted = self.length - start if length is None else length
        data = bytes(memoryview(self._inode.data)[self.position + start : self.position + start + wanted])
        if len(data) < wanted:
            raise OSError(errno.EIO, f"the file has become shorter than the range of {self.length} bytes at {self.position}")
        return data

    def is_resident(self) -> bool:
        return not self._disk.is_cold


class MemoryFile:
    """`File` of a simulated disk."""

    __slots__ = ("_closed", "_disk", "_inode", "_is_durable", "_spent", "_writable", "path", "size")

    def __init__(self, disk: MemoryDisk, inode: Inode, path: str, writable: bool) -> None:
        self._disk = disk
        self._inode = inode
        self._writable = writable
        self._closed = False
        self._is_durable = False
        self._spent: int | None = None
        self.path = path
        self.size = len(inode.data)

    def append(self, *parts: Buffer) -> int:
        self._check_writable()
        data = b"".join(parts)
        start = self.size
        try:
            fault = self._disk.check("append", self.path)
        except DiskCrashed as crash:
            if crash.in_this_call:  # the machine stopped in the middle of this write
                self._inode.write(start, data[: self._disk.random.randint(0, len(data))])
            raise
        if fault is not None:
            if fault.cut_back_fails:
                self._inode.write(start, data[: fault.keep_bytes])
                self._spent = fault.error
            raise fault.as_error(self.path)
        self._inode.write(start, data)
        self._touch(max(self.size, start + len(data)))
        return start

    def write_at(self, position: int, data: Buffer) -> None:
        self._check_writable()
        self._disk.check("write", self.path)
        self._inode.write(position, data)
        self._touch(max(self.size, position + len(data)))

    def read(self, position: int, length: int) -> bytes:
        self._check_open()
        self._disk.check("read", self.path, changes=False)
        return bytes(memoryview(self._inode.data)[position : position + length])

    def range(self, position: int, length: int) -> MemoryFileRange:
        self._check_open()
        return MemoryFileRange(self._disk, self._inode, self.path, position, length)

    def truncate(self, size: int) -> None:
        if size > self.size or size < 0:
            raise ValueError(f"cannot cut {self.path} to {size} bytes: it has {self.size}")
        self._check_writable()
        self._disk.check("truncate", self.path)
        self._inode.truncate(size)
        self._touch(size)

    async def sync(self) -> None:
        self._check_spent()
        self._check_open()
        if self._is_durable:
            return  # as the real disk, so that a simulated power loss shows whether that was true
        if self._disk.pause is not None:
            await self._disk.pause()
        try:
            self._disk.check("sync", self.path)
        except OSError as error:
            self._spent = error.errno
            raise
        self._inode.sync()

    def note_durable(self) -> None:
        self._is_durable = True

    def follow(self, path: str) -> None:
        """Nothing to do: `open_later` opens at once here."""

    def close(self) -> None:
        self._closed = True

    def _touch(self, size: int) -> None:
        self.size = size
        self._inode.modified_ms = self._disk.clock.now_ms()

    def _check_open(self) -> None:
        if self._closed:
            raise OSError(errno.EBADF, "the file handle was closed", self.path)

    def _check_spent(self) -> None:
        if self._spent is not None:
            raise OSError(self._spent, "an earlier write or sync failed, so the file is not written to", self.path)

    def _check_writable(self) -> None:
        self._is_durable = False
        self._check_spent()
        self._check_open()
        if not self._writable:
            raise OSError(errno.EBADF, "the file was opened for reading only", self.path)


CHUNK_BYTES = 1 << 20


def copy_tree(source: Disk, source_path: str, target: Disk, target_path: str) -> None:
    """Copy everything below `source_path` to `target_path`, which is created if missing. Syncs nothing."""
    target.make_directory(target_path)
    for name in source.list_directory(source_path):
        old, new = f"{source_path}/{name}", f"{target_path}/{name}"
        if source.is_directory(old):
            copy_tree(source, old, target, new)
        else:
            copy_file(source, old, target, new)


def copy_file(source: Disk, old: str, target: Disk, new: str) -> None:
    """Copy one file, with its modification time."""
    reader, writer = source.open(old, OpenMode.READ), target.open(new, OpenMode.CREATE)
    try:
        writer.truncate(0)
        for position in range(0, reader.size, CHUNK_BYTES):
            writer.append(reader.read(position, CHUNK_BYTES))
    finally:
        reader.close()
        writer.close()
    target.set_modified_ms(new, source.modified_ms(old))
