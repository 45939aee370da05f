"""Injected faults of the simulated disk: which calls fail, and how.

Operations: open, exists, read, warm, append, write, truncate, sync, list, make_directory, set_modified, lock, replace, rename,
remove, remove_directory, sync_directory, space; "*" means any of them. Paths are matched by shell patterns.
"""

import errno
import os
from dataclasses import dataclass
from fnmatch import fnmatchcase


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
