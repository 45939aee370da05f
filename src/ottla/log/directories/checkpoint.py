"""Kafka's text checkpoints: the four offset checkpoints of a log directory, and the leader epochs of a partition.

Format, every line ended by a newline: the version `0`, the number of entries, then one entry per line: `topic partition offset`
or `epoch startOffset`. An empty file is an empty checkpoint: Apache Kafka creates one at start.

Reading is stricter than Apache's. A file that does not end with a newline, or has a version but no count, is refused as cut
off; Apache would accept a shortened last number. Epochs that do not rise are refused too. What happens with a damaged
checkpoint:

    recovery-point-offset-checkpoint   ignored: every log is recovered from its start; slow, loses nothing
    replication-offset-checkpoint      ignored: high watermarks begin at the log start and rise again with replication
    log-start-offset-checkpoint        ignored: logs begin at their first segment; records deleted on request may reappear
    cleaner-offset-checkpoint          ignored: compaction begins at the log start again
    leader-epoch-checkpoint            rebuilt: every batch has its epoch, so the whole log is scanned

`OffsetCheckpoint.read_or_forget` is for the first four; `recovery/log_loader.py` rebuilds the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from ottla.env import Disk
from ottla.errors import CorruptFile
from ottla.ids import TopicPartition

VERSION = 0
_INT32_MAX = 2**31 - 1
_INT64_MAX = 2**63 - 1

Entry = TypeVar("Entry")


def format_lines(lines: Iterable[str]) -> bytes:
    """The bytes of a checkpoint with `lines` as its entries."""
    entries = list(lines)
    return "".join(f"{line}\n" for line in (str(VERSION), str(len(entries)), *entries)).encode()


def parse_lines(path: str, data: bytes, remedy: str) -> list[tuple[int, list[bytes]]]:
    """The entries of a checkpoint as (byte position, words); `CorruptFile` if it is not one."""
    if not data:
        return []
    if not data.endswith(b"\n"):
        raise CorruptFile(path, len(data), "the file ends in the middle of a line", remedy)
    lines = data[:-1].split(b"\n")
    version = _number(lines[0].strip(), _INT32_MAX)
    if version is None:
        raise CorruptFile(path, 0, f"line 1 should be the version {VERSION}, not {_shown(lines[0])}", remedy)
    if version != VERSION:
        raise CorruptFile(path, 0, f"version {version} is unknown; this release reads version {VERSION}", remedy)
    position = len(lines[0]) + 1
    count = _number(lines[1].strip(), _INT32_MAX) if len(lines) > 1 else None
    if count is None:
        found = _shown(lines[1]) if len(lines) > 1 else "missing"
        raise CorruptFile(path, position, f"line 2 should be the number of entries; it is {found}", remedy)
    if count != len(lines) - 2:
        raise CorruptFile(path, position, f"{count} entries announced, {len(lines) - 2} found", remedy)
    position += len(lines[1]) + 1
    entries = []
    for line in lines[2:]:
        entries.append((position, line.split()))
        position += len(line) + 1
    return entries


def _number(text: bytes, most: int) -> int | None:
    if not text.isdigit() or len(text) > 19:
        return None
    number = int(text)
    return number if number <= most else None


def _shown(line: bytes) -> str:
    return repr(line[:60].decode("ascii", "backslashreplace"))


_FORGET = "Delete the file to start without it: nothing is lost, the next start takes longer"


def format_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    """The bytes of an offset checkpoint, in the order of topics and partitions."""
    return format_lines(f"{partition.topic} {partition.partition} {offset}" for partition, offset in sorted(offsets.items()))


def parse_offsets(path: str, data: bytes) -> dict[TopicPartition, int]:
    """The entries of an offset checkpoint; of two lines for one partition the later counts. `CorruptFile` if it is damaged."""
    offsets = {}
    for line, (position, words) in enumerate(parse_lines(path, data, _FORGET), start=3):
        partition = _number(words[1], _INT32_MAX) if len(words) == 3 else None
        offset = _number(words[2], _INT64_MAX) if len(words) == 3 else None
        if partition is None or offset is None or not words[0].isascii():
            shown = _shown(b" ".join(words))
            raise CorruptFile(path, position, f"line {line} should be `topic partition offset`, not {shown}", _FORGET)
        offsets[TopicPartition(words[0].decode("ascii"), partition)] = offset
    return offsets


class OffsetCheckpoint:
    """One offset checkpoint file. Writes of one checkpoint must not overlap: they share a temporary file."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self.path = path

    def read(self) -> dict[TopicPartition, int]:
        """The entries; empty if there is no file. `CorruptFile` if it is damaged."""
        try:
            data = self._disk.read_file(self.path)
        except FileNotFoundError:
            return {}
        return parse_offsets(self.path, data)

    def read_or_forget(self) -> tuple[dict[TopicPartition, int], CorruptFile | None]:
        """(entries, None), or (no entries, the damage) for the caller to report."""
        try:
            return self.read(), None
        except CorruptFile as damage:
            return {}, damage

    async def write(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Replace the file atomically and durably."""
        await self._disk.replace_file(self.path, format_offsets(offsets))


_SCAN = "Delete the file: the epochs are read from the log's batches at the next start"


def format_epochs(entries: Iterable[tuple[int, int]]) -> bytes:
    """The bytes of a leader epoch checkpoint from (epoch, start offset) pairs."""
    return format_lines(f"{epoch} {start_offset}" for epoch, start_offset in entries)


def parse_epochs(path: str, data: bytes) -> list[tuple[int, int]]:
    """The (epoch, start offset) pairs of a leader epoch checkpoint; `CorruptFile` if it is damaged.

    Both always rise in a file as it was written; if they do not, the file is damaged.
    """
    entries: list[tuple[int, int]] = []
    for line, (position, words) in enumerate(parse_lines(path, data, _SCAN), start=3):
        epoch = _number(words[0], _INT32_MAX) if len(words) == 2 else None
        start_offset = _number(words[1], _INT64_MAX) if len(words) == 2 else None
        if epoch is None or start_offset is None:
            shown = _shown(b" ".join(words))
            raise CorruptFile(path, position, f"line {line} should be `epoch startOffset`, not {shown}", _SCAN)
        if entries and (epoch <= entries[-1][0] or start_offset <= entries[-1][1]):
            what = f"line {line} says `{epoch} {start_offset}`, which does not follow on the line before"
            raise CorruptFile(path, position, what, _SCAN)
        entries.append((epoch, start_offset))
    return entries
