"""File descriptors: raises the process's limit, and divides what there is between files and connections.

Every partition in use keeps three files open, and so do new ones until half of the limit is used. The default limit is often
1,024. Java's runtime raises it by itself, and so do we. Descriptors under the limit are shared out by priority, highest first:

- `SPARES` are reserved for calls that need a descriptor briefly: checkpoints, syncs of folders, listings. These never fail
  for lack of one.
- Work that can wait (new partitions and segments, compaction, moves) leaves `KEPT_FOR_WORK_MAX` free for work that cannot.
- Connections may not use descriptors numbered above `connection_descriptor_max`, so that clients cannot starve files.
- New partitions leave some for connections, so that the node stays reachable.

This state belongs to the process, because descriptors do: all nodes in it share the spares. Callable from any thread.
"""

from __future__ import annotations

import logging
import os
import resource
import time

from ottla.errors import is_out_of_descriptors

logger = logging.getLogger("ottla.descriptors")

LIMIT_MAX = 1 << 20
MODEST_LIMIT = 10_240
"""The most that macOS accepts, even where its hard limit is higher."""

RESERVED_MAX = 1024
FOR_CONNECTIONS_MAX = 256
KEPT_FOR_WORK_MAX = 32
SPARES = 8
FILE_MODE = 0o660
"""Records are for the owner and the group, whatever the umask. The usual umask lets the group only read; that of a container
lets it write, because its next user may be another one of the same group."""
LOG_AGAIN_S = 60.0


def raise_descriptor_limit() -> int:
    """Raise this process's limit on open files as far as allowed, and return the new limit.

    For programs that own their process, not for a broker embedded in one.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    ceiling = LIMIT_MAX if hard == resource.RLIM_INFINITY else min(hard, LIMIT_MAX)
    for wanted in (ceiling, min(ceiling, MODEST_LIMIT)):
        if soft == resource.RLIM_INFINITY or wanted <= soft:
            break
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (ValueError, OSError):
            continue
        return wanted
    return soft


def descriptor_limit() -> int:
    """How many descriptors this process may have open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return LIMIT_MAX if soft == resource.RLIM_INFINITY else soft


def connection_descriptor_max() -> int:
    """The highest descriptor number that a connection may have; higher ones are for files.

    The operating system always hands out the lowest free number, so a high number means that few are left.
    """
    limit = descriptor_limit()
    return limit - min(RESERVED_MAX, limit // 4)


def can_open(files: int, open_files: int, for_growth: bool) -> bool:
    """Implements `Disk.can_open`; `open_files` is the number of files open now. Logs a refusal.

    Opens descriptors to count the free ones: there is no system call that tells.
    """
    limit = descriptor_limit()
    wanted = files + min(KEPT_FOR_WORK_MAX, limit // 8)
    free = _count_free(wanted)
    files_max = connection_descriptor_max() - min(FOR_CONNECTIONS_MAX, limit // 16)
    if free >= wanted and not (for_growth and open_files + files > files_max):
        return True
    shortage.log(limit, open_files, limit - free if free < wanted else None)
    return False


def _count_free(count_max: int) -> int:
    """How many descriptors are free, counting up to `count_max`."""
    taken: list[int] = []
    try:
        taken.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        while len(taken) < count_max:
            taken.append(os.dup(taken[0]))
    except OSError as error:
        if not is_out_of_descriptors(error):
            raise
    finally:
        for fd in taken:
            os.close(fd)
    return len(taken)


class Shortage:
    """Logs that descriptors are short, at most once in `LOG_AGAIN_S`."""

    def __init__(self) -> None:
        self._logged_s = -LOG_AGAIN_S

    def log(self, limit: int, open_files: int, open_in_all: int | None) -> None:
        now_s = time.monotonic()
        if now_s - self._logged_s < LOG_AGAIN_S:
            return
        self._logged_s = now_s
        what = "the rest is kept for connections" if open_in_all is None else f"{open_in_all} descriptors with connections"
        logger.error(
            "too many files are open: %d (%s); the limit of this process is %d (ulimit -n). Open files keep working, but no "
            "partition is created and no segment rolled until some are closed. Raise the limit and restart the node, or delete "
            "topics",
            open_files,
            what,
            limit,
        )


shortage = Shortage()


class Spares:
    """Reserved descriptors, open on /dev/null: one is closed when a brief open finds no other free."""

    def __init__(self) -> None:
        self._held: list[int] = []

    def fill(self) -> None:
        """Reserve descriptors up to `SPARES`, or as many as are free."""
        try:
            while len(self._held) < SPARES:
                self._held.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        except OSError as error:
            if not is_out_of_descriptors(error):
                raise

    def give_up_one(self) -> bool:
        """Close one, so that the caller can open a file. False if none is left."""
        try:
            os.close(self._held.pop())
        except IndexError:
            return False
        return True


spares = Spares()


class Brief:
    """A file opened briefly: `with Brief(path, flags) as fd`. Uses a spare descriptor if no other is free."""

    __slots__ = ("_fd", "_flags", "_path")

    def __init__(self, path: str, flags: int) -> None:
        self._path = path
        self._flags = flags
        self._fd = -1

    def __enter__(self) -> int:
        while True:
            try:
                self._fd = os.open(self._path, self._flags | os.O_CLOEXEC, FILE_MODE)
                return self._fd
            except OSError as error:
                if not is_out_of_descriptors(error) or not spares.give_up_one():
                    raise

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)
        spares.fill()
