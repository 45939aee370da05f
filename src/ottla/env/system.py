"""The contract for facts about the machine: settings of the kernel, limits, disks, clock, names. Also parses their texts.

`SystemFacts` is a value: the texts of files under /proc and /sys, and the answers of a few system calls. Checks are pure
functions of it, so a dictionary of texts is a machine to a test. What could not be read keeps its reason. The real reader
(`env/real/system.py`) reads and never writes; it needs no root.

Names of files may have a `*` (`/proc/[0-9]*/status`). Files of control groups are asked for by their name alone; both versions
are looked at, in the process's own group first and then in those above it, because the limits of all of them hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple, Protocol

UNLIMITED = -1


class Mount(NamedTuple):
    """One line of /proc/self/mountinfo."""

    device: str
    """Major and minor number: `254:0`."""
    root: str
    """The folder of the file system that is mounted."""
    point: str
    options: tuple[str, ...]
    """Of the mount and of its file system."""
    kind: str
    source: str


class Disk(NamedTuple):
    """A block device below a log directory."""

    name: str
    files: Mapping[str, str]
    """Name below /sys/block/NAME → text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """A log directory, or the nearest folder above it that exists."""

    path: str
    existing: str
    """`path`, or the folder above it that exists."""
    problem: str = ""
    """Why this process cannot use it; empty if it can."""
    total_bytes: int = 0
    free_bytes: int = 0
    """For this user: without what is reserved for root."""
    files: int = 0
    """Inodes; 0 if the file system does not count them."""
    free_files: int = 0
    device: int = 0
    partitions: int = 0
    """Folders of partitions in it."""
    foreign_file: str = ""
    """A file in it that belongs to another user."""
    owner: int = -1
    mode: int = 0o755
    disks: tuple[Disk, ...] = ()


class Clock(NamedTuple):
    """What the kernel knows of its clock."""

    is_synchronised: bool
    error_ms: float
    """The largest error that the kernel assumes."""


class Name(NamedTuple):
    """How a host name was resolved."""

    addresses: tuple[str, ...]
    took_ms: float
    problem: str = ""


class Python(NamedTuple):
    """How this interpreter was built."""

    version: str
    is_optimised: bool = True
    is_debug: bool = False
    allocator: str = ""
    """PYTHONMALLOC."""
    has_compiler: bool = False


class RunningNode(NamedTuple):
    """A node of Ottla's that runs on this machine."""

    pid: int
    name: str
    swapped_kb: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to read. Nothing else is."""

    files: tuple[str, ...] = ()
    cgroup_files: tuple[str, ...] = ()
    disk_files: tuple[str, ...] = ()
    """Below /sys/block/NAME of the disks of `directories`."""
    sysctls: tuple[str, ...] = ()
    """Names for macOS, such as kern.ipc.somaxconn."""
    directories: tuple[str, ...] = ()
    looks_into: bool = False
    """Whether to count partitions and find files of other users in them."""
    names: tuple[str, ...] = ()
    clock: bool = False
    nodes: bool = False
    python: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemFacts:
    """A snapshot of the machine."""

    platform: str = "linux"
    files: Mapping[str, str] = field(default_factory=dict)
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """File → why it could not be read."""
    cgroup: Mapping[str, Sequence[tuple[str, str]]] = field(default_factory=dict)
    """Name → (path, text), the process's own group first."""
    sysctls: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """`nofile`, `nproc`, `core` → soft and hard limit; `UNLIMITED`."""
    directories: tuple[Directory, ...] = ()
    mounts: tuple[Mount, ...] = ()
    names: Mapping[str, Name] = field(default_factory=dict)
    clock: Clock | None = None
    nodes: tuple[RunningNode, ...] = ()
    python: Python | None = None
    user: int = 1000
    cpus: int = 1
    """Those that this process may use."""
    container: str = ""
    """How one sees that this is a container; empty if it is none."""

    @property
    def can_write_sysctls(self) -> bool:
        """Whether /proc/sys is writable for root here: in most containers it is not."""
        return not any(each.point == "/proc/sys" and "ro" in each.options for each in self.mounts)

    def text(self, path: str) -> str:
        """The text of a file. Raises `CannotTell` if it could not be read."""
        if path in self.files:
            return self.files[path]
        raise CannotTell(f"{path}: {self.unreadable.get(path, 'it does not exist here')}")

    def number(self, path: str) -> int:
        """The first number in a file. Raises `CannotTell`."""
        return int(self.numbers(path)[0])

    def numbers(self, path: str) -> list[int]:
        """The numbers in a file, at least one. Raises `CannotTell`."""
        text = self.text(path)
        try:
            numbers = [int(word) for word in text.split()]
        except ValueError:
            numbers = []
        if not numbers:
            raise CannotTell(f"{path}: {text.strip()[:40]!r} is no number")
        return numbers

    def mount_of(self, path: str) -> Mount | None:
        """The mount that `path` lies in: the one with the longest mount point, and of these the last."""
        found: Mount | None = None
        for each in self.mounts:
            prefix = each.point.rstrip("/") + "/"
            if (path + "/").startswith(prefix) and (found is None or len(each.point) >= len(found.point)):
                found = each
        return found


class CannotTell(Exception):
    """A check cannot say: what it needs could not be read. The text says what and why."""


class SystemReader(Protocol):
    """Reads facts about the machine. Blocks: called from a worker thread."""

    def read(self, wanted: Wanted) -> SystemFacts: ...


# -- the formats of files


def parse_mounts(text: str) -> tuple[Mount, ...]:
    """The lines of /proc/self/mountinfo; lines of another form are left out."""
    found: list[Mount] = []
    for line in text.splitlines():
        before, separator, after = line.partition(" - ")
        fields, rest = before.split(" "), after.split(" ")
        if not separator or len(fields) < 6 or len(rest) < 2:
            continue
        options = (*fields[5].split(","), *(rest[2].split(",") if len(rest) > 2 else ()))
        found.append(Mount(fields[2], _plain(fields[3]), _plain(fields[4]), options, rest[0], _plain(rest[1])))
    return tuple(found)


def _plain(field: str) -> str:
    r"""A path of mountinfo: space, tab, newline and backslash are written as `\040` and so on."""
    if "\\" not in field:
        return field
    parts = field.split("\\")
    plain = [parts[0]]
    for part in parts[1:]:
        is_octal = len(part) >= 3 and all(digit in "01234567" for digit in part[:3])
        plain.append(chr(int(part[:3], 8)) + part[3:] if is_octal else "\\" + part)
    return "".join(plain)


def cgroup_folders(cgroup: str, mounts: Sequence[Mount]) -> tuple[str, ...]:
    """The folders of the process's control groups, from /proc/self/cgroup and the mounts: own first, then those above.

    In a container the path may lie outside of what is mounted: then the mount itself is the process's group.
    """
    found: list[str] = []
    for line in cgroup.splitlines():
        number, _, rest = line.partition(":")
        names, separator, path = rest.partition(":")
        if not separator or not path.startswith("/"):
            continue
        wanted = set(names.split(",")) - {""}
        for mount in mounts:
            is_v2 = number == "0" and not wanted and mount.kind == "cgroup2"
            is_v1 = mount.kind == "cgroup" and wanted & set(mount.options)
            if not (is_v2 or is_v1):
                continue
            base = mount.point.rstrip("/")
            below = path[len(mount.root.rstrip("/")) :] if _is_below(path, mount.root) else ""
            parts = [part for part in below.split("/") if part and part != ".."]
            folders = ["/".join([base, *parts[:count]]) for count in range(len(parts), -1, -1)]
            found += [folder for folder in folders if folder not in found]
            break
    return tuple(found)


def _is_below(path: str, root: str) -> bool:
    return root == "/" or path == root or path.startswith(root + "/")


def parse_flat(text: str) -> dict[str, int]:
    """Lines of a name and a number: cpu.stat, memory.events, memory.oom_control."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if value.strip().isdecimal() and value.strip().isascii():
            found[name] = int(value)
    return found


def parse_limit(text: str) -> int:
    """`max` or a number, of control groups; `UNLIMITED` also for the huge numbers that version 1 has instead of `max`."""
    word = (text.split() or ["max"])[0]
    if not (word.isdecimal() and word.isascii()):
        return UNLIMITED
    return UNLIMITED if int(word) >= 1 << 60 else int(word)


def parse_pressure(text: str) -> dict[str, float]:
    """`some avg10=0.00 avg60=1.20 …` lines as {"some avg60": 1.2, …}."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        kind, *pairs = line.split() or [""]
        for pair in pairs:
            name, _, value = pair.partition("=")
            try:
                found[f"{kind} {name}"] = float(value)
            except ValueError:
                continue
    return found


def parse_netstat(text: str) -> dict[str, int]:
    """/proc/net/netstat: pairs of lines with names and numbers, as {"TcpExt ListenDrops": 3, …}."""
    lines = text.splitlines()
    found: dict[str, int] = {}
    for names, values in pairwise(lines):
        kind, _, rest = names.partition(": ")
        if values.startswith(kind + ": ") and kind:
            for name, value in zip(rest.split(), values.partition(": ")[2].split(), strict=False):
                if value.lstrip("-").isdecimal() and value.isascii():
                    found[f"{kind} {name}"] = int(value)
    return found


def parse_fields(text: str) -> dict[str, str]:
    """`Name:\tvalue` lines: /proc/meminfo, /proc/self/status."""
    pairs = (line.partition(":") for line in text.splitlines() if ":" in line)
    return {name.strip(): value.strip() for name, _, value in pairs}


def kilobytes(fields: Mapping[str, str], name: str) -> int:
    """A field of /proc/meminfo or status in kB; 0 if it is not there."""
    word = (fields.get(name, "").split() or ["0"])[0]
    return int(word) if word.isdecimal() and word.isascii() else 0


def chosen(text: str) -> str:
    """The word in brackets: `always [madvise] never`, `mq-deadline [none]`; the only word, if there is one."""
    words = text.split()
    marked = [word[1:-1] for word in words if word.startswith("[") and word.endswith("]")]
    return marked[0] if marked else words[0] if len(words) == 1 else ""


def stolen_share(text: str) -> float | None:
    """The share of processor time that other virtual machines took, since the boot, from /proc/stat."""
    for line in text.splitlines():
        name, *words = line.split() or [""]
        if name == "cpu" and len(words) >= 8 and all(word.isdecimal() and word.isascii() for word in words[:8]):
            ticks = [int(word) for word in words[:8]]
            return ticks[7] / sum(ticks) if sum(ticks) else 0.0
    return None


def swap_devices(text: str) -> list[str]:
    """The devices and files of /proc/swaps."""
    return [line.split()[0] for line in text.splitlines()[1:] if line.split()]
