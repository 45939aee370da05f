"""Chooses the partition of a record: by its key's hash, or the sticky partition without a key."""

from __future__ import annotations

import random
from collections.abc import Sequence

from ottla.records.partitioning import murmur2, partition_of_key

__all__ = ["StickyPartition", "murmur2", "partition_of_key"]


class StickyPartition:
    """Records without a key stay with one partition until its batch is full, so that batches are large."""

    def __init__(self, available: Sequence[int]) -> None:
        self.available = list(available)
        self.current = random.choice(self.available)

    def move_on(self) -> None:
        """The batch is full: choose the next partition at random."""
        self.current = random.choice(self.available)
