"""Rows of a dump, with Kafka's field names, in the order Kafka's own tool prints them.

Dumpers yield rows and know nothing of terminals; renderers (render.py) know nothing of files.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What a row describes. The value is its name in JSON output."""

    NOTE = "note"
    BATCH = "batch"
    RECORD = "record"
    OFFSET_INDEX_ENTRY = "offsetIndexEntry"
    TIME_INDEX_ENTRY = "timeIndexEntry"
    TRANSACTION_INDEX_ENTRY = "transactionIndexEntry"
    PRODUCER = "producer"
    CHECKPOINT_ENTRY = "checkpointEntry"
    LEADER_EPOCH = "leaderEpoch"
    PROPERTIES = "properties"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a dump. A NOTE or a PROBLEM has its sentence in the field `text`."""

    kind: Kind
    fields: dict[str, object]


Rows = Iterator[Row]


def note(text: str) -> Row:
    """Information that is not a problem."""
    return Row(Kind.NOTE, {"text": text})


def problem(text: str) -> Row:
    """Damage of the file: the command's exit code becomes 1."""
    return Row(Kind.PROBLEM, {"text": text})
