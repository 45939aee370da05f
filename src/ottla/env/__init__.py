"""The contracts for everything outside the process: clock, disk, network, randomness, workers, helper processes.

This package holds only types, `InlineWorkers` and `run_to_end`. There are two implementations. `env/real` uses the operating
system; no other package on floors 0–3 touches it. `sim/` works in memory: it can crash, tear writes and jump its clock.
"""

from ottla.env.clock import Clock
from ottla.env.disk import (
    FILE_BYTES_MAX,
    SMALL_FILE_BYTES_MAX,
    Buffer,
    DirectoryLock,
    Disk,
    DiskSpace,
    File,
    FileRange,
    OpenMode,
    refuse_large_file,
)
from ottla.env.net import AddressRefused, Listener, Network, Sendable, SocketOptions, Stream, StreamOwner
from ottla.env.tls import TlsFailed, TlsOptions
from ottla.env.usage import ProcessUsage
from ottla.env.work import (
    Await,
    HelperDied,
    Helpers,
    HelperWorld,
    InlineWorkers,
    OffLoop,
    Progress,
    Reserve,
    Steps,
    Workers,
    run_to_end,
)
from ottla.env.world import Randomness, World

__all__ = [
    "FILE_BYTES_MAX",
    "SMALL_FILE_BYTES_MAX",
    "AddressRefused",
    "Await",
    "Buffer",
    "Clock",
    "DirectoryLock",
    "Disk",
    "DiskSpace",
    "File",
    "FileRange",
    "HelperDied",
    "HelperWorld",
    "Helpers",
    "InlineWorkers",
    "Listener",
    "Network",
    "OffLoop",
    "OpenMode",
    "ProcessUsage",
    "Progress",
    "Randomness",
    "Reserve",
    "Sendable",
    "SocketOptions",
    "Steps",
    "Stream",
    "StreamOwner",
    "TlsFailed",
    "TlsOptions",
    "Workers",
    "World",
    "refuse_large_file",
    "run_to_end",
]
