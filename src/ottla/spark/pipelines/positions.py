"""Where a flow stands: the offsets of its last committed batch, read from Spark's checkpoint.

A checkpoint has a file per batch in `offsets/` (written before the batch) and in `commits/` (after it). An offsets file has a
version line, a line of JSON about the batch and a line for each source.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from ottla import TopicPartition
from ottla.spark.pipelines import storage
from ottla.spark.pipelines.spec import Spec


@dataclass(frozen=True)
class Position:
    """How far a flow has come."""

    batch: int
    offsets: tuple[dict[str, Any], ...]
    """The end offsets of each source, as the source writes them."""
    is_batch_open: bool
    """Whether a later batch was begun and not finished: the next run writes it again."""

    def partitions(self) -> dict[TopicPartition, int]:
        """The offsets of topics; where two sources read one partition, the smaller one."""
        found: dict[TopicPartition, int] = {}
        for source in self.offsets:
            for topic, parts in source.items():
                for partition, offset in parts.items() if isinstance(parts, dict) else ():
                    if partition.isdecimal() and isinstance(offset, int):
                        each = TopicPartition(topic, int(partition))
                        found[each] = min(offset, found.get(each, offset))
        return found

    def text(self) -> str:
        """`orders-0: 12, orders-1: 9`."""
        return ", ".join(f"{each}: {offset}" for each, offset in self.partitions().items()) or f"batch {self.batch}"


def position_of(spec: Spec, flow: str) -> Position | None:
    """The position of a flow; None if it has not run, or if the storage cannot be seen (`storage.files_of`)."""
    files, folder = storage.files_of(spec), storage.checkpoint(spec, flow)
    commits = [] if files is None else _numbers(files, f"{folder}/commits")
    if files is None or not commits:
        return None
    batch = commits[-1]
    offsets = _numbers(files, f"{folder}/offsets")
    lines = (files.read(f"{folder}/offsets/{batch}") or "").splitlines()[2:]
    return Position(batch, tuple(_parse(line) for line in lines), bool(offsets) and offsets[-1] > batch)


def _numbers(files: storage.Files, folder: str) -> list[int]:
    return sorted(int(name) for name in files.names(folder) if name.isdecimal())


def _parse(line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
