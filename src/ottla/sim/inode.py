"""The bytes of one simulated file, and what a power loss may leave of them.

Besides the current bytes, an inode keeps what it needs to return to the last sync: the size then, and the old content of every
page changed below that size. So appending a gigabyte in small pieces with a sync after each costs no copies.

A power loss keeps what was synced. Unsynced changes of a file have one of four fates: lost (nothing newer than the sync), kept
(all of it), prefix (the file ends somewhere between the two sizes) or torn (every changed page is old or new independently; a
new page that was not written reads as zeros; the size is any in between).
"""

from collections import Counter
from random import Random

PAGE_BYTES = 4096


class Inode:
    """One file's bytes, now and as of its last sync."""

    __slots__ = ("data", "modified_ms", "old_pages", "synced_size")

    def __init__(self, modified_ms: int) -> None:
        self.data = bytearray()
        self.modified_ms = modified_ms
        self.synced_size = 0
        self.old_pages: dict[int, bytes] = {}

    def write(self, position: int, data: bytes | bytearray | memoryview) -> None:
        end = position + len(data)
        self._remember(position, end)
        if position > len(self.data):
            self.data.extend(bytes(position - len(self.data)))
        self.data[position:end] = data

    def truncate(self, size: int) -> None:
        self._remember(size, len(self.data))
        del self.data[size:]

    def _remember(self, start: int, end: int) -> None:
        """Save the synced content of the pages of bytes `start`..`end` before they change."""
        if start >= self.synced_size:
            return
        for page in range(start // PAGE_BYTES, -(-min(end, self.synced_size) // PAGE_BYTES)):
            if page not in self.old_pages:
                self.old_pages[page] = bytes(self.data[page * PAGE_BYTES : min((page + 1) * PAGE_BYTES, self.synced_size)])

    def sync(self) -> None:
        self.synced_size = len(self.data)
        self.old_pages.clear()

    @property
    def is_synced(self) -> bool:
        return not self.old_pages and self.synced_size == len(self.data)

    def synced_bytes(self) -> bytearray:
        """The content as of the last sync."""
        old = bytearray(self.data[: self.synced_size])
        old.extend(bytes(self.synced_size - len(old)))
        for page, content in self.old_pages.items():
            old[page * PAGE_BYTES : page * PAGE_BYTES + len(content)] = content
        return old

    def lose_power(self, random: Random, counts: Counter[str]) -> None:
        """Change to a state that a power loss may leave, chosen by `random`."""
        if self.is_synced:
            return
        fate = random.choice(("lost", "kept", "prefix", "torn"))
        counts[fate] += 1
        if fate != "kept":
            old, new = self.synced_bytes(), self.data
            if len(new) < len(old) and fate == "lost":
                counts["truncation_undone"] += 1
            if fate == "lost":
                self.data = old
            elif fate == "prefix":
                size = random.randint(min(len(old), len(new)), max(len(old), len(new)))
                self.data = (new + old[len(new) :])[:size]
            else:
                self.data = self._torn(old, new, random)
        self.sync()

    def _torn(self, old: bytearray, new: bytearray, random: Random) -> bytearray:
        low, high = sorted((len(old), len(new)))
        size = random.choice((len(old), len(new), random.randint(low, high)))
        torn = bytearray(size)
        for start in range(0, size, PAGE_BYTES):
            end = min(start + PAGE_BYTES, size)
            source = random.choice((old, new))
            piece = source[start:end]
            torn[start : start + len(piece)] = piece
        return torn
