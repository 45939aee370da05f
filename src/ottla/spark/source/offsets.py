"""Offsets as users and checkpoints write them: `{"orders": {"0": 23, "1": -2}}`, as in Spark's own Kafka source."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ottla import TopicPartition
from ottla.spark.errors import SparkOptionError

EARLIEST = -2
LATEST = -1

Offsets = dict[TopicPartition, int]


def to_json(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Offsets as checkpoints keep them, sorted: the same offsets always make the same text."""
    found: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[str(partition)] = offset
    return found


def from_json(found: Mapping[str, Mapping[str, int]]) -> Offsets:
    """Offsets of a checkpoint."""
    return {TopicPartition(topic, int(partition)): each for topic, parts in found.items() for partition, each in parts.items()}


def parse_numbers(name: str, text: str, what: str) -> Offsets:
    """The numbers (offsets, or times) by partition of an option; `SparkOptionError` names the option."""
    example = f'{name} must be JSON such as {{"orders": {{"0": 23}}}}, with {what} for each partition'
    try:
        found: Any = json.loads(text)
    except ValueError as problem:
        raise SparkOptionError(f"{example}; {text!r} is no JSON: {problem}") from None
    if not isinstance(found, dict) or not all(isinstance(parts, dict) for parts in found.values()):
        raise SparkOptionError(f"{example}, not {text}")
    made: Offsets = {}
    for topic, parts in found.items():
        for partition, number in parts.items():
            if not partition.isdecimal() or isinstance(number, bool) or not isinstance(number, int):
                raise SparkOptionError(f"{example}; {topic} has {json.dumps({partition: number})}")
            made[TopicPartition(topic, int(partition))] = number
    return made
