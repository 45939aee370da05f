"""The contracts through which floors 0–3 reach the world: clock, disk, workers, helper processes.

Only types live here. `env/real` is the one implementation that touches the operating system; `sim/` holds the one in memory
that can crash, tear writes and jump its clock.
"""

from ottla.env.clock import Clock
from ottla.env.disk import DirectoryLock, Disk, File, FileRange, OpenMode
from ottla.env.work import Helpers, Workers

__all__ = ["Clock", "DirectoryLock", "Disk", "File", "FileRange", "Helpers", "OpenMode", "Workers"]
