"""Reads facts about the machine from /proc, /sys and a few system calls. Writes nothing, needs no root.

`root` stands before every path of /proc, /sys and /etc, so that tests can lay out a machine as a folder. Log directories are
always real.
"""

from __future__ import annotations

import glob
import os
import resource
import socket
import sys
import time

from ottla.env.system import (
    UNLIMITED,
    Clock,
    Directory,
    Disk,
    Mount,
    Name,
    Python,
    RunningNode,
    SystemFacts,
    Wanted,
    cgroup_folders,
    kilobytes,
    parse_fields,
    parse_mounts,
)

TEXT_MAX = 1 << 20
"""Files of /proc are small; /proc/self/mountinfo of a machine with thousands of containers is not."""
FOREIGN_MAX = 2_000
"""So many entries of a log directory are looked at."""
_STATUS_UNSYNCHRONISED = 0x40
_TIMEX_BYTES = 256
"""More than `struct timex` has on any platform."""
_CONTAINER_FILES = {"/.dockerenv": "Docker", "/run/.containerenv": "Podman"}
_SERVICE_VARIABLE = "KUBERNETES_SERVICE_HOST"
NODE_NAME = "ottla node"
"""How processes of nodes are named; see `own_process.name_process`."""


class RealSystem:
    """The machine that this process runs on."""

    def __init__(self, root: str = "") -> None:
        self._root = root.rstrip("/")
        self._files: dict[str, str] = {}
        self._unreadable: dict[str, str] = {}

    def read(self, wanted: Wanted) -> SystemFacts:
        """Read what is wanted. What cannot be read is noted, never raised."""
        self._files, self._unreadable = {}, {}
        is_linux = sys.platform == "linux" or bool(self._root)
        for pattern in wanted.files if is_linux else ():
            for path in self._expanded(pattern):
                self._note(path)
        mounts = parse_mounts(self._text("/proc/self/mountinfo") or "") if is_linux else ()
        return SystemFacts(
            platform="linux" if is_linux else sys.platform,
            files=self._files,
            unreadable=self._unreadable,
            cgroup=self._cgroup(wanted.cgroup_files, mounts) if is_linux else {},
            sysctls={} if is_linux else _sysctls(wanted.sysctls),
            limits=_limits(),
            directories=tuple(self._directory(path, wanted, mounts) for path in wanted.directories),
            mounts=mounts,
            names={each: _resolved(each) for each in wanted.names},
            clock=_clock() if wanted.clock and sys.platform == "linux" else None,
            nodes=self._nodes() if wanted.nodes and is_linux else (),
            python=_python() if wanted.python else None,
            user=os.geteuid(),
            cpus=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
            container=self._container(mounts) if is_linux else "",
        )

    # -- files

    def _expanded(self, pattern: str) -> list[str]:
        if "*" not in pattern:
            return [pattern]
        return sorted(path[len(self._root) :] for path in glob.glob(self._root + pattern))

    def _note(self, path: str) -> None:
        try:
            self._files[path] = self._read(path)
        except OSError as error:
            self._unreadable[path] = (error.strerror or str(error)).lower()

    def _read(self, path: str) -> str:
        with open(self._root + path, "rb", buffering=0) as file:
            parts = []
            while data := file.read(TEXT_MAX):
                parts.append(data)
        return b"".join(parts).decode("utf-8", "replace")

    def _text(self, path: str) -> str | None:
        try:
            return self._read(path)
        except OSError:
            return None

    def _cgroup(self, names: tuple[str, ...], mounts: tuple[Mount, ...]) -> dict[str, list[tuple[str, str]]]:
        found: dict[str, list[tuple[str, str]]] = {}
        folders = cgroup_folders(self._text("/proc/self/cgroup") or "", mounts) if names else ()
        for name in names:
            texts = ((f"{folder}/{name}", self._text(f"{folder}/{name}")) for folder in folders)
            found[name] = [(path, text) for path, text in texts if text is not None]
        return found

    # -- where this runs

    def _container(self, mounts: tuple[Mount, ...]) -> str:
        root = next((each for each in reversed(mounts) if each.point == "/"), None)
        if root is not None and root.source.startswith("/dev/") and root.root == "/":
            return ""  # a machine of its own; one that was made from an image may still have the files below
        for path, kind in _CONTAINER_FILES.items():
            if os.path.exists(self._root + path):
                return kind
        if _SERVICE_VARIABLE in os.environ and not self._root:
            return "Kubernetes"
        if root is not None and root.kind == "overlay" and any(each.point == "/etc/hostname" for each in mounts):
            return "a container"
        cgroup = self._text("/proc/1/cgroup") or ""
        return next((kind for kind in ("kubepods", "docker", "lxc", "libpod") if f"/{kind}" in cgroup), "")

    def _nodes(self) -> tuple[RunningNode, ...]:
        found = []
        for path in self._expanded("/proc/[0-9]*/status"):
            fields = parse_fields(self._text(path) or "")
            if fields.get("Name", "").startswith(NODE_NAME):
                found.append(RunningNode(int(path.split("/")[2]), fields["Name"], kilobytes(fields, "VmSwap")))
        return tuple(found)

    # -- log directories

    def _directory(self, path: str, wanted: Wanted, mounts: tuple[Mount, ...]) -> Directory:
        path = os.path.abspath(path)
        existing = path
        while not os.path.lexists(existing) and existing != "/":
            existing = os.path.dirname(existing)
        try:
            status, space = os.stat(existing), os.statvfs(existing)
        except OSError as error:
            return Directory(path=path, existing=existing, problem=f"{existing}: {(error.strerror or str(error)).lower()}")
        problem = ""
        if not os.path.isdir(existing):
            problem = f"{existing} is a file, not a folder"
        elif not os.access(existing, os.W_OK | os.X_OK | (os.R_OK if existing == path else 0)):
            problem = f"user {os.geteuid()} may not write to {existing}"
        elif space.f_flag & os.ST_RDONLY:
            problem = f"{existing} is mounted read-only"
        partitions, foreign = _look_into(path, status.st_uid) if wanted.looks_into and existing == path else (0, "")
        return Directory(
            path=path,
            existing=existing,
            problem=problem,
            total_bytes=space.f_blocks * space.f_frsize,
            free_bytes=space.f_bavail * space.f_frsize,
            files=space.f_files,
            free_files=space.f_favail,
            device=status.st_dev,
            partitions=partitions,
            foreign_file=foreign,
            owner=status.st_uid,
            mode=status.st_mode & 0o7777,
            disks=self._disks(existing, status.st_dev, wanted.disk_files, mounts) if wanted.disk_files else (),
        )

    def _disks(self, path: str, device: int, names: tuple[str, ...], mounts: tuple[Mount, ...]) -> tuple[Disk, ...]:
        """The physical devices below a file system: the disk of a partition, the members of a dm or md device."""
        number = f"{os.major(device)}:{os.minor(device)}"
        folder = os.path.realpath(f"{self._root}/sys/dev/block/{number}")
        if not os.path.isdir(folder):  # btrfs and others have device numbers of their own: the mount names the device
            mount = SystemFacts(mounts=mounts).mount_of(os.path.realpath(path))
            name = os.path.basename(mount.source) if mount is not None and mount.source.startswith("/dev/") else ""
            folder = os.path.realpath(f"{self._root}/sys/class/block/{name}")
            if not name or not os.path.isdir(folder):
                return ()
        found: dict[str, Disk] = {}
        pending = [folder]
        while pending:
            folder = pending.pop()
            if os.path.exists(f"{folder}/partition"):
                folder = os.path.dirname(folder)
            below = [os.path.realpath(each) for each in sorted(glob.glob(f"{folder}/slaves/*"))]
            pending += below
            name = os.path.basename(folder)
            if not below and name not in found:
                texts = ((each, self._text(f"{folder[len(self._root) :]}/{each}")) for each in names)
                found[name] = Disk(name, {each: text for each, text in texts if text is not None})
        return tuple(found[name] for name in sorted(found))


def _look_into(path: str, owner: int) -> tuple[int, str]:
    """How many folders of partitions a log directory has, and a file that does not belong to its owner."""
    partitions, foreign = 0, ""
    try:
        with os.scandir(path) as entries:
            for number, entry in enumerate(entries):
                name, dash, index = entry.name.rpartition("-")
                partitions += bool(name and dash and index.isdecimal())
                if number < FOREIGN_MAX and not foreign and entry.stat(follow_symlinks=False).st_uid != owner:
                    foreign = entry.path
    except OSError:
        pass
    return partitions, foreign


def _limits() -> dict[str, tuple[int, int]]:
    kinds = {"nofile": "RLIMIT_NOFILE", "nproc": "RLIMIT_NPROC", "core": "RLIMIT_CORE"}
    found = {}
    for name, constant in kinds.items():
        soft, hard = resource.getrlimit(getattr(resource, constant))
        found[name] = (_limit(soft), _limit(hard))
    return found


def _limit(value: int) -> int:
    return UNLIMITED if value == resource.RLIM_INFINITY else value


def _clock() -> Clock | None:
    """What adjtimex tells. Reading needs no privilege."""
    import ctypes  # late: few callers ask

    buffer = ctypes.create_string_buffer(_TIMEX_BYTES)
    try:
        state = ctypes.CDLL(None, use_errno=True).adjtimex(buffer)
    except (OSError, AttributeError):
        return None
    if state < 0:
        return None
    # struct timex: modes (int), then longs: offset, freq, maxerror, esterror; status (int).
    size = ctypes.sizeof(ctypes.c_long)
    error_us = ctypes.c_long.from_buffer(buffer, 3 * size).value
    status = ctypes.c_int.from_buffer(buffer, 5 * size).value
    return Clock(not status & _STATUS_UNSYNCHRONISED, error_us / 1000)


def _resolved(name: str) -> Name:
    begun_s = time.perf_counter()
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        return Name((), (time.perf_counter() - begun_s) * 1000, getattr(error, "strerror", None) or str(error))
    addresses = tuple(dict.fromkeys(str(each[4][0]) for each in found))
    return Name(addresses, (time.perf_counter() - begun_s) * 1000)


def _python() -> Python:
    from shutil import which  # late, as the next: a part of what takes long to import
    from sysconfig import get_config_var

    arguments = str(get_config_var("CONFIG_ARGS") or "")
    version = ".".join(map(str, sys.version_info[:3]))
    return Python(
        version,
        not arguments or "--enable-optimizations" in arguments or "pgo" in arguments.lower(),
        hasattr(sys, "gettotalrefcount"),
        os.environ.get("PYTHONMALLOC", ""),
        any(which(each) for each in ("cc", "gcc", "clang")),
    )


def _sysctls(names: tuple[str, ...]) -> dict[str, str]:
    import subprocess  # late: on macOS only

    found = {}
    for name in names:
        try:
            ran = subprocess.run(["sysctl", "-n", name], capture_output=True, text=True, timeout=2, check=False)
        except (OSError, subprocess.SubprocessError):
            continue
        if ran.returncode == 0:
            found[name] = ran.stdout.strip()
    return found
