"""Renderers of a dump's rows: Kafka's lines for pipes and JSON lines for programs. `table.py` has the one for terminals.

The plain lines are those of Apache Kafka's kafka-dump-log, so scripts written for it work. All renderers stream: they print
each row as it is read, also of a segment of a gigabyte.
"""

import json
from typing import Protocol, TextIO

from ottla.cli.common.escaping import escape, escape_json
from ottla.cli.dump_log.rows import Kind, Row

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
