"""File descriptors: as many as the operating system lets a process have, and never all of them for connections.

Every partition keeps three files open, and the limit that processes start with, often 1,024, is meant for small ones: Java's
runtime raises it by itself, and so do we. What there is under the limit is shared by files and connections. A file that cannot
be opened looks like a failed disk and may stop the node, so strangers who connect must not take the last descriptors.
"""

from __future__ import annotations

import resource

LIMIT_MAX = 1 << 20
MODEST_LIMIT = 10_240
"""What macOS allows at most, whatever its hard limit says."""

RESERVED_MAX = 1024


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


def connection_descriptor_max() -> int:
    """The highest descriptor that a connection may have: those above are for files.

    The operating system always gives the lowest that is free, so a high one says that few are left.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        soft = LIMIT_MAX
    return soft - min(RESERVED_MAX, soft // 4)
