"""File descriptors: as many as the operating system lets a process have, and never all of them for one purpose.

Every partition keeps three files open, and the limit that processes start with, often 1,024, is meant for small ones: Java's
runtime raises it by itself, and so do we. What there is under the limit is shared, and goes to them in this order:

- `SPARES` are held back for calls that need a descriptor for a moment: checkpoints, syncs of folders, listings. Those never
  fail for want of one.
- Some are left by whatever can wait (`KEPT_FOR_WORK_MAX`): new partitions and segments, compacting, moving.
- Connections get none that lies high in the table (`connection_descriptor_max`), so that strangers who connect cannot take
  what files need.
- New partitions leave some for connections: a node that nobody can reach is of no use.

The descriptors are the process's, so this is too: whatever nodes it holds share the spares. Any thread.
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
"""What macOS allows at most, whatever its hard limit says."""

RESERVED_MAX = 1024
FOR_CONNECTIONS_MAX = 256
KEPT_FOR_WORK_MAX = 32
SPARES = 8
SAY_AGAIN_S = 60.0


def raise_descriptor_limit() -> int:
    """Raise this process's limit on open files as far as it may be; returns what it is then. For who owns the process."""
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
    """How many descriptors this process may have."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return LIMIT_MAX if soft == resource.RLIM_INFINITY else soft


def connection_descriptor_max() -> int:
    """The highest descriptor that a connection may have: those above are for files.

    The operating system always gives the lowest that is free, so a high one says that few are left.
    """
    limit = descriptor_limit()
    return limit - min(RESERVED_MAX, limit // 4)


def can_open(files: int, open_files: int, for_growth: bool) -> bool:
    """See `Disk.can_open`; `open_files` is how many there are. Says so if it cannot be.

    Tries it: how many descriptors are free is known in no other way.
    """
    limit = descriptor_limit()
    wanted = files + min(KEPT_FOR_WORK_MAX, limit // 8)
    free = _count_free(wanted)
    files_max = connection_descriptor_max() - min(FOR_CONNECTIONS_MAX, limit // 16)
    if free >= wanted and not (for_growth and open_files + files > files_max):
        return True
    shortage.say(limit, open_files, limit - free if free < wanted else None)
    return False


def _count_free(count_max: int) -> int:
    """How many descriptors are free, as far as `count_max`."""
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
    """Tells people that descriptors are short, once in a while."""

    def __init__(self) -> None:
        self._said_s = -SAY_AGAIN_S

    def say(self, limit: int, open_files: int, open_in_all: int | None) -> None:
        now_s = time.monotonic()
        if now_s - self._said_s < SAY_AGAIN_S:
            return
        self._said_s = now_s
        what = "the rest is kept for connections" if open_in_all is None else f"{open_in_all} with connections and all else"
        logger.error(
            "too many files are open: %d (%s), where this process may have %d in all (ulimit -n). What is open goes on, but "
            "until there is room no partition is made and no segment begun. Raise the limit and restart the node, or delete "
            "topics",
            open_files,
            what,
            limit,
        )


shortage = Shortage()


class Spares:
    """Descriptors that are held back, to be given up for a moment when there are no others."""

    def __init__(self) -> None:
        self._held: list[int] = []

    def fill(self) -> None:
        """Hold as many as there should be, or as can be had."""
        try:
            while len(self._held) < SPARES:
                self._held.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        except OSError as error:
            if not is_out_of_descriptors(error):
                raise

    def give_up_one(self) -> bool:
        """Close one, for somebody who opens something now. False if there is none."""
        try:
            os.close(self._held.pop())
        except IndexError:
            return False
        return True


spares = Spares()


class Brief:
    """A file that is open for a moment: `with Brief(path, flags) as fd`. Takes a spare descriptor if there is no other."""

    __slots__ = ("_fd", "_flags", "_path")

    def __init__(self, path: str, flags: int) -> None:
        self._path = path
        self._flags = flags
        self._fd = -1

    def __enter__(self) -> int:
        while True:
            try:
                self._fd = os.open(self._path, self._flags | os.O_CLOEXEC, 0o644)
                return self._fd
            except OSError as error:
                if not is_out_of_descriptors(error) or not spares.give_up_one():
                    raise

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)
        spares.fill()
