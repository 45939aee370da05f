"""`Screen`: where results go (the command line prints them, tests keep them), and the rows of SHOW, DESCRIBE and SET."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from ottla.spark.sql.catalog import Catalog
from ottla.spark.sql.declarations import METADATA, Declaration
from ottla.spark.sql.settings import BAD, RESET, WORDS, Settings
from ottla.spark.sql.statements import TABLE


class Shown(NamedTuple):
    """A column of a result."""

    name: str
    kind: str = "string"
    """Spark's name of its type, such as `long` or `timestamp`; `list` for names with commas between them."""


class Screen(Protocol):
    """Shows results and messages."""

    rows_max: int | None
    """How many rows of a batch are shown; None for all."""

    def table(self, columns: Sequence[Shown], rows: Iterable[Sequence[Any]]) -> None:
        """A result that is complete."""

    def live(self, columns: Sequence[Shown], batches: Iterator[Sequence[Sequence[Any]]]) -> int:
        """A result that grows, batch by batch, until the iterator ends. Returns how many rows were shown."""

    def note(self, text: str) -> None:
        """A sentence about a result."""

    def warn(self, text: str) -> None:
        """A sentence about a problem that does not stop the statement."""


def shown_columns(df: Any) -> list[Shown]:
    """The columns of a DataFrame."""
    return [Shown(each.name, each.dataType.typeName()) for each in df.schema.fields]


Listed = tuple[list[Shown], list[tuple[Any, ...]]]


def topic_rows(there: Mapping[str, int], catalog: Catalog) -> Listed:
    """Topics, and the names that they are declared under."""
    names: dict[str, list[str]] = {}
    for each in catalog:
        names.setdefault(each.topic, []).append(each.name)
    rows = [(name, count, ", ".join(names.get(name, ()))) for name, count in sorted(there.items())]
    return [Shown("Topic"), Shown("Partitions", "integer"), Shown("Declared as")], rows


def declaration_rows(catalog: Catalog, kind: str) -> Listed:
    """The streams, or the tables."""
    rows = [(each.name, each.topic, each.format, _columns(each)) for each in catalog if each.kind == kind]
    return [Shown(kind.capitalize()), Shown("Topic"), Shown("Format"), Shown("Columns", "list")], rows


def described_rows(declaration: Declaration) -> tuple[list[Shown], list[tuple[Any, ...]], list[str]]:
    """The columns of a declaration, and sentences about it."""
    rows: list[tuple[Any, ...]] = [
        (each.name, each.type, "key" if each.name == declaration.key else "") for each in declaration.columns
    ]
    if declaration.schema is not None:
        rows = [(name, "(Avro)", "key" if name == declaration.key else "") for name in _avro_fields(declaration)]
    rows += [(name, kind, "of every record") for name, kind in METADATA.items()]
    notes = [
        f"{declaration.name} is a {declaration.kind} over the topic {declaration.topic}, in the format {declaration.format}"
        if declaration.format != "text"
        else f"{declaration.name} is a topic without a declaration: keys and values are shown as text"
    ]
    if declaration.kind == TABLE:
        notes.append("a table has the latest value of each key; null deletes")
    return [Shown("Column"), Shown("Type"), Shown("Remark")], rows, notes


def setting_rows(known: Settings, name: str | None) -> Listed:
    """All settings that have a value, or one."""
    values = {RESET: "latest", BAD: "drop"} | known.values
    if name is not None:
        values = {name: values[name]} if name in values else {}
    rows = [(key, value, "" if key in known.values else f"default; {' or '.join(WORDS[key])}") for key, value in values.items()]
    return [Shown("Setting"), Shown("Value"), Shown("Remark")], rows


def query_rows(running: Iterable[Any]) -> Listed:
    """The continuous inserts of this shell."""
    rows = [(each.name, each.state, each.rows(), each.text) for each in running]
    return [Shown("Query"), Shown("State"), Shown("Records", "long"), Shown("SQL")], rows


def _columns(declaration: Declaration) -> str:
    if declaration.schema is not None:
        return ", ".join(_avro_fields(declaration))
    return ", ".join(f"{each.name} {each.type}" for each in declaration.columns)


def _avro_fields(declaration: Declaration) -> list[str]:
    fields = declaration.schema.get("fields", ()) if isinstance(declaration.schema, dict) else ()
    return [each["name"] for each in fields] or ["value"]
