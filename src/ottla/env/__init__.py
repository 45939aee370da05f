"""The contracts through which floors 0–3 reach the world: clock, disk, network, chance, workers, helper processes.

Only types live here, and the one-line `InlineWorkers`. `env/real` is the one implementation that touches the operating
system; `sim/` holds the one in memory that can crash, tear writes and jump its clock.
"""

from ottla.env.clock import Clock
from ottla.env.disk import Buffer, DirectoryLock, Disk, DiskSpace, File, FileRange, OpenMode
from ottla.env.net import AddressRefused, Listener, Network, Sendable, SocketOptions, Stream, StreamOwner
from ottla.env.usage import ProcessUsage
from ottla.env.work import HelperDied, Helpers, HelperWorld, InlineWorkers, Progress, Workers
from ottla.env.world import Randomness, World

__all__ = [
    "AddressRefused",
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
    "OpenMode",
    "ProcessUsage",
    "Progress",
    "Randomness",
    "Sendable",
    "SocketOptions",
    "Stream",
    "StreamOwner",
    "Workers",
    "World",
]
