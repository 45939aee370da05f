"""What a leader commits is durable on a majority of the voters' disks at that moment: a power loss of all of them keeps it.

Looks at the disks themselves, at the bytes that were synced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ottla.errors import CorruptRecords
from ottla.records.batch import iterate_batches
from ottla.records.layout import HEADER_SIZE
from ottla.sim.checkers.checker import Violation
from ottla.sim.cluster.checkers.checker import ClusterChecker, Logged
from ottla.sim.disk import MemoryDisk
from ottla.sim.inode import Inode
from ottla.sim.names import Folder


class DurableMajority(ClusterChecker):
    """`disks` returns the disks of all voters by node; `folder` is that of the metadata log."""

    def __init__(self, disks: Callable[[], dict[str, MemoryDisk]], folder: str) -> None:
        self._disks = disks
        self._folder = folder
        self._known: dict[tuple[str, str], _Progress] = {}
        self.judged = 0

    def committed(self, node: str, epoch: int, is_leader: bool, offset: int, batches: Sequence[Logged]) -> None:
        if not is_leader:
            return
        self.judged += 1
        disks = self._disks()
        ends = {name: self._durable_end(name, disk) for name, disk in disks.items()}
        if sum(end >= offset for end in ends.values()) <= len(disks) // 2:
            found = ", ".join(f"{name} up to {end}" for name, end in ends.items())
            raise Violation(f"{node} commits up to {offset}, and durable is: {found}")

    def _durable_end(self, node: str, disk: MemoryDisk) -> int:
        """The end of the last synced batch of this node's log, or of its newest synced snapshot."""
        end, folder = 0, disk.names.find(self._folder)
        for name, inode in folder.entries.items() if isinstance(folder, Folder) else ():
            if not isinstance(inode, Inode):
                continue
            if name.endswith(".checkpoint") and inode.is_synced:
                end = max(end, int(name[:20]))
            elif name.endswith(".log"):
                end = max(end, self._known.setdefault((node, name), _Progress(int(name[:20]))).durable_end(inode))
        return end


class _Progress:
    """How far the synced bytes of one segment were looked at."""

    def __init__(self, base_offset: int) -> None:
        self._base_offset = base_offset
        self._position = 0
        self._end_offset = base_offset
        self._last = slice(0, 0)
        """Where the header of the last batch is."""
        self._header = b""

    def durable_end(self, inode: Inode) -> int:
        if inode.old_pages:  # synced bytes were changed since
            return _Progress(self._base_offset)._look(inode.synced_bytes())
        size = min(inode.synced_size, len(inode.data))
        if size < self._position or inode.data[self._last] != self._header:
            self.__init__(self._base_offset)  # type: ignore[misc]  # the log was truncated: begin again
        return self._look(memoryview(inode.data)[:size])

    def _look(self, data: bytearray | memoryview) -> int:
        try:
            for view in iterate_batches(bytes(data[self._position :]), allow_cut_end=True):
                self._last = slice(self._position, self._position + HEADER_SIZE)
                self._position += view.size
                self._end_offset = view.next_offset
        except CorruptRecords:
            pass  # a power loss has left zeros, which the next start removes
        self._header = bytes(data[self._last])
        return self._end_offset
