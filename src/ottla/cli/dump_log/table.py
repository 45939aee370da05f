"""The terminal view of a dump: aligned columns, one heading per file, colours.

Column widths are fixed: a row is printed before the next one is known. On a narrow terminal columns are left out; a line that
is still too long is broken between cells.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from ottla.cli.common.output import HEADING_STYLE, NOTE_STYLE, escape
from ottla.cli.common.tables import GAP, shorten, wrap
from ottla.cli.common.times import show_time
from ottla.cli.dump_log.rows import Kind, Row

Cell = Callable[[dict[str, object]], str]


@dataclass(frozen=True, slots=True)
class Column:
    """A heading, a width (aligned right, or left with `left`), and a function that makes the cell from a row's fields.

    `leaves` ranks the columns that are left out on a narrow terminal, the highest first; columns with 0 stay.
    """

    heading: str
    width: int
    cell: Cell
    left: bool = False
    leaves: int = 0

    def fit(self, text: str) -> str:
        return text.ljust(self.width) if self.left else text.rjust(self.width)


def _field(name: str) -> Cell:
    def cell(fields: dict[str, object]) -> str:
        value = fields.get(name)
        return "-" if value is None else str(value)

    return cell


def _time(*names: str) -> Cell:
    def cell(fields: dict[str, object]) -> str:
        return next((show_time(fields[name]) for name in names if name in fields), "-")

    return cell


def _producer(fields: dict[str, object]) -> str:
    if fields["producerId"] == -1:
        return "-"
    sequences = "" if fields["baseSequence"] == -1 else f" #{fields['baseSequence']}–{fields['lastSequence']}"
    return f"{fields['producerId']}/{fields['producerEpoch']}{sequences}"


def _flags(fields: dict[str, object]) -> str:
    flags = [word for name, word in (("isTransactional", "txn"), ("isControl", "control")) if fields[name]]
    if fields["deleteHorizonMs"] is not None:
        flags.append("horizon")
    if not fields["isvalid"]:
        flags.append("INVALID")
    return ",".join(flags)


BATCH_COLUMNS = (
    Column("Offsets", 23, lambda f: f"{f['baseOffset']}–{f['lastOffset']}"),
    Column("Count", 7, _field("count")),
    Column("Max timestamp", 24, _time("CreateTime", "LogAppendTime")),
    Column("Codec", 6, _field("compresscodec"), left=True, leaves=3),
    Column("Bytes", 9, _field("size"), leaves=2),
    Column("Position", 11, _field("position"), leaves=4),
    Column("Epoch", 6, _field("partitionLeaderEpoch"), leaves=5),
    Column("Producer #sequences", 22, _producer, left=True, leaves=6),
    Column("Flags", 12, _flags, left=True, leaves=1),
)

COLUMNS: dict[Kind, tuple[Column, ...]] = {
    Kind.BATCH: BATCH_COLUMNS,
    Kind.OFFSET_INDEX_ENTRY: (Column("Offset", 20, _field("offset")), Column("Position", 12, _field("position"))),
    Kind.TIME_INDEX_ENTRY: (Column("Timestamp", 24, _time("timestamp")), Column("Offset", 20, _field("offset"))),
    Kind.TRANSACTION_INDEX_ENTRY: (
        Column("Producer id", 12, _field("producerId")),
        Column("First offset", 20, _field("firstOffset")),
        Column("Last offset", 20, _field("lastOffset")),
        Column("Last stable offset", 20, _field("lastStableOffset"), leaves=1),
    ),
    Kind.PRODUCER: (
        Column("Producer id", 12, _field("producerId")),
        Column("Epoch", 6, _field("producerEpoch"), leaves=2),
        Column("Coordinator epoch", 18, _field("coordinatorEpoch"), leaves=4),
        Column("Transaction since", 18, _field("currentTxnFirstOffset"), leaves=1),
        Column("Last sequence", 14, _field("lastSequence"), leaves=3),
        Column("Last offset", 16, _field("lastOffset")),
        Column("Last timestamp", 24, _time("lastTimestamp")),
    ),
    Kind.CHECKPOINT_ENTRY: (
        Column("Topic", 27, _field("topic"), left=True),
        Column("Partition", 9, _field("partition")),
        Column("Offset", 16, _field("offset")),
    ),
    Kind.LEADER_EPOCH: (Column("Leader epoch", 13, _field("epoch")), Column("Start offset", 20, _field("startOffset"))),
}


class TableRenderer:
    """Rows as aligned columns on a terminal. `width` is how long lines may be, None for any length."""

    def __init__(self, console: Console, width: int | None) -> None:
        self._console = console
        self._width = width
        self._kind: Kind | None = None
        self._left_out: dict[str, None] = {}

    def start_file(self, path: str) -> None:
        self._kind = None
        self._print(escape(path), "bold")

    def show(self, row: Row) -> None:
        if row.kind is Kind.RECORD:
            self._record(row.fields)
        elif row.kind is Kind.PROBLEM:
            self._sentence(f"✗ {row.fields['text']}", "bold red")
        elif row.kind is Kind.NOTE:
            self._sentence(str(row.fields["text"]), NOTE_STYLE)
        elif row.kind is Kind.PROPERTIES:
            for name, value in row.fields.items():
                self._print(f"  {escape(name):<28}{escape(str(value))}")
        else:
            self._columns(row)

    def finish(self) -> None:
        if self._left_out:
            self._sentence(f"(no room for {', '.join(self._left_out)}: --wide shows all columns)", NOTE_STYLE)

    def _columns(self, row: Row) -> None:
        columns = self._fitting(COLUMNS[row.kind])
        if row.kind is not self._kind:
            self._kind = row.kind
            self._cells(columns, [column.heading for column in columns], HEADING_STYLE)
        style = "red" if row.fields.get("isvalid") is False else ""
        self._cells(columns, [escape(column.cell(row.fields)) for column in columns], style)

    def _fitting(self, columns: Sequence[Column]) -> list[Column]:
        shown = list(columns)
        while self._width is not None and sum(len(GAP) + column.width for column in shown) > self._width:
            leaving = max(shown, key=lambda column: column.leaves)
            if not leaving.leaves:
                break
            shown.remove(leaving)
        self._left_out |= dict.fromkeys(column.heading for column in columns if column not in shown)
        return shown

    def _cells(self, columns: Sequence[Column], cells: Sequence[str], style: str) -> None:
        parts = [column.fit(cell) for column, cell in zip(columns, cells, strict=True)]
        if not self._has_room(parts):  # a cell is wider than its column: break the line
            parts = [shorten(cell, column.width) if column.left else cell for column, cell in zip(columns, cells, strict=True)]
        self._print_parts(parts, len(GAP), style)

    def _has_room(self, parts: Sequence[str]) -> bool:
        return self._width is None or sum(len(GAP) + len(part) for part in parts) <= self._width

    def _record(self, fields: dict[str, object]) -> None:
        parts = [f"{fields.get('offset', '')!s:>23}"]
        for name, value in fields.items():
            if name == "offset" or name in ("keySize", "valueSize", "sequence") or (name == "headerKeys" and not value):
                continue
            is_time = name in ("CreateTime", "LogAppendTime")
            parts.append(show_time(value) if is_time else escape(f"{name}: {value}"))
        self._print_parts(parts, len(GAP) + len(parts[0]) + len(GAP))

    def _print_parts(self, parts: Sequence[str], indent: int, style: str = "") -> None:
        """Side by side; the first part that has no room begins a new line."""
        line = GAP + parts[0]
        for part in parts[1:]:
            if self._width is not None and len(line) + len(GAP) + len(part.rstrip()) > self._width and line.strip():
                self._print(line, style)
                line = " " * indent + part.strip()
            else:
                line += GAP + part
        self._print(line, style)

    def _sentence(self, text: str, style: str) -> None:
        for line in [escape(text)] if self._width is None else wrap(escape(text), self._width - len(GAP)):
            self._print(GAP + line, style)

    def _print(self, line: str, style: str = "") -> None:
        self._console.print(Text(line.rstrip(), style=style), soft_wrap=True)
