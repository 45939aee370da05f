"""What is measured: sizes with and without keys, and how each client is used. Pure."""

from __future__ import annotations

from typing import NamedTuple

OTHERS = ("confluent-kafka", "aiokafka", "kafka-python")
CEILING = "raw protocol"
"""What loopback and broker allow (`raw.py`), for comparison."""
KEYS = 10_000
"""How many different keys there are."""
PARTITIONS = 6


class Case(NamedTuple):
    """Records of one kind."""

    size: int
    keyed: bool

    @property
    def label(self) -> str:
        return f"{'1 KB' if self.size == 1000 else f'{self.size} B'}{', keys' if self.keyed else ''}"


CASES = (Case(100, False), Case(100, True), Case(1000, False), Case(1000, True))


class Use(NamedTuple):
    """One way to use a client. `records` are for values of 100 B and of 1 KB: about a second's work."""

    name: str
    records: tuple[int, int]
    pure: bool = False

    def count(self, case: Case, scale: float) -> int:
        return max(1_000, int(self.records[case.size >= 1000] * scale))


PRODUCE = (
    Use("Ottla send", (400_000, 200_000)),
    Use("Ottla send_many", (2_000_000, 500_000)),
    Use("Ottla Arrow", (2_000_000, 500_000)),
    Use("Ottla asyncio", (200_000, 100_000)),
    Use("Ottla send, pure Python", (50_000, 40_000), pure=True),
    Use("confluent-kafka", (400_000, 150_000)),
    Use("aiokafka", (40_000, 30_000)),
    Use("kafka-python", (30_000, 20_000)),
    Use(CEILING, (4_000_000, 800_000)),
)
CONSUME = (
    Use("Ottla poll", (1_000_000, 400_000)),
    Use("Ottla iterate", (600_000, 300_000)),
    Use("Ottla batches", (1_000_000, 400_000)),
    Use("Ottla Arrow", (1_000_000, 400_000)),
    Use("Ottla asyncio", (400_000, 200_000)),
    Use("Ottla poll, pure Python", (80_000, 60_000), pure=True),
    Use("confluent-kafka", (600_000, 300_000)),
    Use("aiokafka", (100_000, 60_000)),
    Use("kafka-python", (100_000, 60_000)),
    Use(CEILING, (1_000_000, 400_000)),
)
LATENCY = ("Ottla", "Ottla asyncio", "confluent-kafka", "aiokafka", "kafka-python")
"""Clients that send one record at a time: at a fixed rate, and when the one before is stored."""


def filled_records(case: Case, scale: float) -> int:
    """How many records a topic to read must have."""
    return max(use.count(case, scale) for use in CONSUME) + 1_000
