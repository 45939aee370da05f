"""The contracts through which floors 0–3 reach the world: clock, disk, workers, helper processes.

Only types live here, and the one-line `InlineWorkers`. `env/real` is the one implementation that touches the operating
system; `sim/` holds the one in memory that can crash, tear writes and jump its clock.
"""

from ottla.env.clock import Clock
from ottla.env.disk import Buffer, DirectoryLock, Disk, File, FileRange, OpenMode
from ottla.env.work import HelperDied, Helpers, HelperWorld, InlineWorkers, Progress, Workers

__all__ = [
    "Buffer",
    "Clock",
    "DirectoryLock",
    "Disk",
    "File",
    "FileRange",
    "HelperDied",
    "HelperWorld",
    "Helpers",
    "InlineWorkers",
    "OpenMode",
    "Progress",
    "Workers",
]
