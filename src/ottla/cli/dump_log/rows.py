"""Rows of a dump, with Kafka's field names, in the order Kafka's own tool prints them.

Dumpers yield rows and know nothing of terminals; renderers know nothing of files. The plain lines are those of Apache Kafka's
kafka-dump-log, so scripts written for it work. All renderers stream: they print each row as it is read, also of a segment of a
gigabyte. `table.py` has the renderer for terminals.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, TextIO

from ottla.cli.common.output import escape, escape_json
from ottla.records.record import Record

MAX_BYTES_DEFAULT = 2**31 - 1
RecordDecoder = Callable[[Record], dict[str, object]]
"""Takes a record and returns the fields `key` and `payload`; either may be missing."""


@dataclass(frozen=True, slots=True)
class DumpOptions:
    """Kafka's flags. `decoder` is None if the content of records is not shown."""

    deep_iteration: bool = False
    decoder: RecordDecoder | None = None
    skip_record_metadata: bool = False
    max_bytes: int = MAX_BYTES_DEFAULT
    index_sanity_check: bool = False
    verify_index_only: bool = False


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


# Fields that Kafka's tool prints the way Java shows an optional number.
_OPTIONAL_NUMBERS = frozenset({"deleteHorizonMs", "currentTxnFirstOffset"})


# Words after which Kafka's tool prints no colon.
_BARE_WORDS = frozenset({"SnapshotHeader", "SnapshotFooter", "KRaftVersion", "KRaftVoters"})


class Renderer(Protocol):
    """Prints rows."""

    def start_file(self, path: str) -> None: ...
    def show(self, row: Row) -> None: ...
    def finish(self) -> None: ...


def _plain_value(name: str, value: object) -> str:
    if name in _OPTIONAL_NUMBERS:
        return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return escape_json(json.dumps(value, separators=(",", ":"), ensure_ascii=False))
    if isinstance(value, list):
        return "[" + ",".join(str(item) for item in value) + "]"
    return "null" if value is None else str(value)


class PlainRenderer:
    """Kafka's lines. Record content is escaped only with `for_terminal`, everything else always."""

    def __init__(self, out: TextIO, for_terminal: bool = False) -> None:
        self._out = out
        self._for_terminal = for_terminal

    def start_file(self, path: str) -> None:
        self._out.write(f"Dumping {escape(path)}\n")

    def show(self, row: Row) -> None:
        if row.kind in (Kind.NOTE, Kind.PROBLEM):
            self._out.write(f"{escape(str(row.fields['text']))}\n")
            return
        line = " ".join(
            f"{name}{'' if name in _BARE_WORDS else ':'} {_plain_value(name, value)}" for name, value in row.fields.items()
        )
        if self._for_terminal or row.kind is not Kind.RECORD:
            line = escape(line)
        self._out.write(f"| {line}\n" if row.kind is Kind.RECORD else f"{line}\n")

    def finish(self) -> None:
        self._out.flush()


class JsonRenderer:
    """One JSON object a line: `{"file": …, "kind": …, …}`."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._path = ""

    def start_file(self, path: str) -> None:
        self._path = path

    def show(self, row: Row) -> None:
        shown = json.dumps({"file": self._path, "kind": row.kind.value, **row.fields}, ensure_ascii=False)
        self._out.write(escape_json(shown) + "\n")

    def finish(self) -> None:
        self._out.flush()
