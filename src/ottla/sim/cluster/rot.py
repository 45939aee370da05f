"""`rot`: a byte of a record in a closed, flushed segment of a node changes, and after a while its disk is replaced or repaired.

Nobody may take the damaged batch for records: followers refuse it, consumers raise, and both go on when it is whole again. The
node does not end meanwhile (`turn` is held, and plans with `kill all` have no rot): a start may cut a log at a damaged batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from ottla.ids import INTERNAL_TOPICS
from ottla.log.names import LOG_SUFFIX, segment_file_name
from ottla.records.batch import iterate_batches
from ottla.records.layout import HEADER_SIZE
from ottla.sim.inode import Inode

if TYPE_CHECKING:
    from ottla.sim.cluster.machine import ClusterMachine


class ColdBatch(NamedTuple):
    """A batch in a closed segment, by the place of its records in the file."""

    path: str
    start: int
    end: int
    is_led: bool
    """Whether its node leads the partition: then consumers read it."""


def cold_batches(machine: ClusterMachine) -> Iterator[ColdBatch]:
    """The batches of clients in the closed and flushed segments of a node that is up."""
    if not machine.is_up or machine.node is None:
        return
    for partition in machine.node.services.partitions:
        log = partition.log
        if partition.name.topic in INTERNAL_TOPICS or log.config.compact or log.failure is not None:
            continue
        for base_offset, next_offset in zip(log.segments.base_offsets, log.segments.base_offsets[1:], strict=False):
            path = f"{log.folder}/{segment_file_name(base_offset, LOG_SUFFIX)}"
            inode = machine.disk.names.find(path)
            if next_offset <= log.recovery_point and isinstance(inode, Inode):
                for view in iterate_batches(bytes(inode.data), allow_cut_end=True):
                    yield ColdBatch(path, view.position + HEADER_SIZE, view.position + view.size, partition.is_leading)


def rot(machine: ClusterMachine, batch: ColdBatch, random: Random) -> Callable[[], None]:
    """Change a byte of the batch. Returns what changes it back, unless the file is gone by then."""
    inode = machine.disk.names.find(batch.path)
    assert isinstance(inode, Inode)
    position = random.randrange(batch.start, batch.end)
    inode.data[position] ^= 0xFF

    def repair() -> None:
        if machine.disk.names.find(batch.path) is inode:
            inode.data[position] ^= 0xFF

    return repair
