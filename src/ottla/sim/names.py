"""The folders and names of the simulated disk, and which of them survive a power loss.

Unsynced changes are groups of (folder, name) keys that a power loss keeps or undoes together. A new or removed name is a group
of its own. A rename joins the old and the new name, so it is never half done. Chance decides for each group.
"""

import posixpath
from collections import Counter
from random import Random

from ottla.sim.inode import Inode

Key = tuple["Folder", str]


class Folder:
    """A directory: names → files and folders."""

    __slots__ = ("entries",)

    def __init__(self) -> None:
        self.entries: dict[str, Inode | Folder] = {}


class Change:
    """Names changed together and not yet synced: for each, what it named at the last sync."""

    __slots__ = ("before", "kind")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.before: dict[Key, Inode | Folder | None] = {}


class Names:
    """The tree of folders, with its unsynced changes."""

    def __init__(self) -> None:
        self.root = Folder()
        self._changes: dict[Key, Change] = {}

    def find(self, path: str) -> Inode | Folder | None:
        node: Inode | Folder | None = self.root
        for name in path.strip("/").split("/"):
            if not name:
                continue
            if not isinstance(node, Folder):
                return None
            node = node.entries.get(name)
        return node

    def folder_of(self, path: str) -> Folder:
        """The folder that holds, or would hold, `path`."""
        node = self.find(posixpath.dirname(path))
        if not isinstance(node, Folder):
            raise FileNotFoundError(2, "No such file or directory", path)
        return node

    def set(self, kind: str, *steps: tuple[str, Inode | Folder | None]) -> None:
        """Make each path of `steps` name the node beside it (None: nothing), as one change of `kind`."""
        change = Change(kind)
        for path, node in steps:
            folder, name = self.folder_of(path), posixpath.basename(path)
            key = (folder, name)
            earlier = self._changes.get(key)
            if earlier is not None:
                if earlier.kind == "rename":
                    change.kind = "rename"
                for joined, before in earlier.before.items():
                    change.before.setdefault(joined, before)
                    self._changes[joined] = change
            change.before.setdefault(key, folder.entries.get(name))
            self._changes[key] = change
            if node is None:
                folder.entries.pop(name, None)
            else:
                folder.entries[name] = node

    def sync(self, folder: Folder) -> None:
        """Make every change that touches `folder` durable."""
        for change in [change for (owner, _), change in self._changes.items() if owner is folder]:
            for key in change.before:
                self._changes.pop(key, None)

    def lose_power(self, random: Random, counts: Counter[str]) -> None:
        """Keep or undo each unsynced change."""
        changes = {id(change): change for change in self._changes.values()}
        for change in changes.values():
            if random.random() < 0.5:
                continue
            counts[f"{change.kind}_undone"] += 1
            for (folder, name), before in change.before.items():
                if before is None:
                    folder.entries.pop(name, None)
                else:
                    folder.entries[name] = before
        self._changes.clear()

    def files(self) -> list[tuple[str, Inode]]:
        """Every file with its path, in a fixed order."""
        found: list[tuple[str, Inode]] = []
        waiting: list[tuple[str, Folder]] = [("", self.root)]
        while waiting:
            path, folder = waiting.pop()
            for name, node in sorted(folder.entries.items()):
                if isinstance(node, Folder):
                    waiting.append((f"{path}/{name}", node))
                else:
                    found.append((f"{path}/{name}", node))
        return found
