"""The terminal view of a dump: aligned columns that stream, one heading per file, colours where they help.

Widths are fixed per column rather than measured, because a row is printed before the next one is known.
"""

from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from ottla.cli.common.times import show_time
from ottla.cli.dump_log.rows import Kind, Row

Cell = Callable[[dict[str, object]], str]


@dataclass(frozen=True, slots=True)
class Column:
    """A heading, a width (numbers sit right, `<` puts text left), and how to make the cell from a row's fields."""

    heading: str
    width: int
    cell: Cell
    left: bool = False

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
    Column("offsets", 23, lambda f: f"{f['baseOffset']}–{f['lastOffset']}"),
    Column("count", 7, _field("count")),
    Column("max timestamp", 24, _time("CreateTime", "LogAppendTime")),
    Column("codec", 6, _field("compresscodec"), left=True),
    Column("bytes", 9, _field("size")),
    Column("position", 11, _field("position")),
    Column("epoch", 6, _field("partitionLeaderEpoch")),
    Column("producer #sequences", 22, _producer, left=True),
    Column("flags", 12, _flags, left=True),
)

COLUMNS: dict[Kind, tuple[Column, ...]] = {
    Kind.BATCH: BATCH_COLUMNS,
    Kind.OFFSET_INDEX_ENTRY: (Column("offset", 20, _field("offset")), Column("position", 12, _field("position"))),
    Kind.TIME_INDEX_ENTRY: (Column("timestamp", 24, _time("timestamp")), Column("offset", 20, _field("offset"))),
    Kind.TRANSACTION_INDEX_ENTRY: (
        Column("producer id", 12, _field("producerId")),
        Column("first offset", 20, _field("firstOffset")),
        Column("last offset", 20, _field("lastOffset")),
        Column("last stable offset", 20, _field("lastStableOffset")),
    ),
    Kind.PRODUCER: (
        Column("producer id", 12, _field("producerId")),
        Column("epoch", 6, _field("producerEpoch")),
        Column("coordinator epoch", 18, _field("coordinatorEpoch")),
        Column("transaction since", 18, _field("currentTxnFirstOffset")),
        Column("last sequence", 14, _field("lastSequence")),
        Column("last offset", 20, _field("lastOffset")),
        Column("last timestamp", 24, _time("lastTimestamp")),
    ),
    Kind.CHECKPOINT_ENTRY: (
        Column("topic", 40, _field("topic"), left=True),
        Column("partition", 10, _field("partition")),
        Column("offset", 20, _field("offset")),
    ),
    Kind.LEADER_EPOCH: (Column("leader epoch", 13, _field("epoch")), Column("start offset", 20, _field("startOffset"))),
}


class TableRenderer:
    """Rows as aligned columns on a terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._kind: Kind | None = None

    def start_file(self, path: str) -> None:
        self._kind = None
        self._print(Text(path, style="bold"))

    def show(self, row: Row) -> None:
        if row.kind is Kind.RECORD:
            self._print(self._record(row.fields))
        elif row.kind is Kind.PROBLEM:
            self._print(Text(f"  ✗ {row.fields['text']}", style="bold red"))
        elif row.kind is Kind.NOTE:
            self._print(Text(f"  {row.fields['text']}", style="dim"))
        elif row.kind is Kind.PROPERTIES:
            for name, value in row.fields.items():
                self._print(Text(f"  {name:<28}{value}"))
        else:
            self._columns(row)

    def finish(self) -> None:
        """Nothing is held back, so there is nothing to do."""

    def _columns(self, row: Row) -> None:
        columns = COLUMNS[row.kind]
        if row.kind is not self._kind:
            self._kind = row.kind
            self._print(Text("  " + "  ".join(column.fit(column.heading) for column in columns).rstrip(), style="cyan"))
        style = "red" if row.fields.get("isvalid") is False else ""
        self._print(Text("  " + "  ".join(column.fit(column.cell(row.fields)) for column in columns).rstrip(), style=style))

    def _record(self, fields: dict[str, object]) -> Text:
        line = Text("    ")
        if "offset" in fields:
            line.append(f"{fields['offset']!s:>21}", style="green")
        for name, value in fields.items():
            if name == "offset" or name in ("keySize", "valueSize", "sequence") or (name == "headerKeys" and not value):
                continue
            shown = show_time(value) if name in ("CreateTime", "LogAppendTime") else value
            label = "" if name in ("CreateTime", "LogAppendTime") else f"{name}: "
            line.append(f"  {label}", style="dim").append(str(shown))
        return line

    def _print(self, line: Text) -> None:
        self._console.print(line, soft_wrap=True, highlight=False)
