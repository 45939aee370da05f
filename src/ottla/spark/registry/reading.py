"""Keys and values as columns: what the driver finds out before a query, and how tasks decode.

The columns are fixed when the query is planned, by the subject's newest schema; with `schema.evolution=widen` by all of its
schemas together. Given a schema (`.schema(…)`, or the one of a DataFrame that was loaded before), it is the newest version that
has those columns. Records of other versions are read into them. What happens to a schema that was registered later, with fields
or types that the columns do not hold, is the choice of `schema.evolution`: keep leaves its new fields out, fail and widen stop
the query; started again, the columns are new ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ottla.schemas import RegistryRefusedError, RegistryUnavailableError, Schema
from ottla.schemas.framing import NotFramed, unframe
from ottla.spark.decoding.avro import made_column
from ottla.spark.errors import SourceError, SparkOptionError
from ottla.spark.registry.languages import ColumnType, Language, Read, Unreadable, language_of
from ottla.spark.registry.options import BAD_NULL, KEEP, WIDEN, RegistryOptions, SideOptions, client_of
from ottla.spark.schema import source_schema

if TYPE_CHECKING:
    from ottla import TopicPartition

VERSIONS_MAX = 200
"""So many of a subject's newest versions are looked at."""


@contextmanager
def registry_errors(kind: type[Exception], what: str) -> Iterator[None]:
    """Errors of the registry become `kind`, with what was being done."""
    try:
        yield
    except (RegistryUnavailableError, RegistryRefusedError) as problem:
        raise kind(f"{what}: {problem}") from None


@dataclass(frozen=True)
class Side:
    """The columns of keys or values, as the driver has found them: small enough to be sent with every task."""

    options: SideOptions
    subject: str
    schemas: tuple[Schema, ...]
    """What the columns are made of, oldest first: one schema, or with `widen` several."""
    known: tuple[tuple[str, str], ...]
    """The schemas that the subject had when the columns were chosen, by text and type."""
    evolution: str
    bad_records: str

    def language(self) -> Language:
        return language_of(self.options.kind, client_of(self.options.address), self.schemas, self.options.message)


def find_sides(options: RegistryOptions, topics: Sequence[str], given: Any = None) -> tuple[Side, ...]:
    """The columns of the sides that are not binary. `given` is the schema that Spark has for the whole row, if there is one."""
    wanted = {field.name: field.dataType.simpleString() for field in given} if given is not None else None
    return tuple(
        _find_side(each, options, _subject(each, topics), None if wanted is None else wanted.get(each.side))
        for each in options.sides
        if wanted is None or each.side in wanted
    )


def decoded_schema(options: RegistryOptions, topics: Sequence[str], has_headers: bool) -> Any:
    """The columns that a reader gives without `.schema(…)`."""
    from pyspark.sql.types import StructField, StructType

    found = {each.options.side: spark_type(each.language().type) for each in find_sides(options, topics)}
    plain = source_schema(has_headers)
    return StructType([StructField(each.name, found.get(each.name, each.dataType)) for each in plain])


def decoding_of(options: RegistryOptions, topics: Sequence[str], schema: Any) -> Decoding | None:
    """What tasks do to give the columns of `schema`; None if keys and values are binary."""
    sides = find_sides(options, topics, schema)
    return Decoding(sides, tuple(field.name for field in schema)) if sides else None


def _subject(side: SideOptions, topics: Sequence[str]) -> str:
    if side.subject is not None:
        return side.subject
    if len(topics) != 1:
        found = ", ".join(topics) or "a pattern"
        raise SparkOptionError(
            f"{side.side}.format takes its schema from one subject, and the topics are {found}: name it with "
            f"{side.side}.subject, or read the topics one by one"
        )
    return side.subject_of(topics[0])


def _find_side(side: SideOptions, options: RegistryOptions, subject: str, wanted: str | None) -> Side:
    registry = client_of(side.address)
    with registry_errors(SparkOptionError, f"the columns of {side.side} (subject {subject})"):
        versions = registry.versions(subject)[-VERSIONS_MAX:]
        schemas = [registry.version(subject, each).schema for each in versions]
    for each in schemas:
        if each.kind != side.kind:
            raise SparkOptionError(
                f"subject {subject} has schemas of type {each.kind}: write {side.side}.format={each.kind.lower()}"
            )
    known = tuple((each.text, each.kind) for each in schemas)
    there = ""
    for end in range(len(schemas), 0, -1):
        chosen = tuple(schemas[:end] if options.evolution == WIDEN else schemas[end - 1 : end])
        found = spark_type(language_of(side.kind, registry, chosen, side.message).type)
        if wanted is None or found.simpleString() == wanted:
            return Side(side, subject, chosen, known, options.evolution, options.bad_records)
        there = there or found.simpleString()
    raise SparkOptionError(
        f"the column {side.side} is {wanted}, and no version of subject {subject} has these columns; the newest has {there}"
    )


def spark_type(kind: ColumnType) -> Any:
    """A column's type in Spark. From Arrow's, because Spark's JVM, which parses DDL, is not there where this is asked."""
    from pyspark.sql.pandas.types import from_arrow_type

    return from_arrow_type(kind.made, prefer_timestamp_ntz=True)


# In tasks

_readers: dict[Side, SideReader] = {}
"""Spark reuses its Python workers: what was found out of a schema serves all tasks that come."""


def reader_of(side: Side) -> SideReader:
    found = _readers.get(side)
    if found is None:
        found = _readers[side] = SideReader(side)
    return found


class SideReader:
    """Decodes keys or values. The schemas that records were written with are kept by id and by GUID."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self._registry = client_of(side.options.address)
        self._language = side.language()
        self._known = frozenset(side.known)
        self._writers: dict[int | str, Read] = {}
        self.type = self._language.type
        self.spark = spark_type(self.type)

    def decode(self, raw: Any, headers: Any) -> tuple[Any, list[str | None]]:
        """The column, and for each row why there is no value."""
        from pyspark.sql.pandas.types import to_arrow_type

        values: list[Any] = []
        reasons: list[str | None] = []
        rows = raw.to_pylist()
        has_headers = headers is not None and headers.null_count < len(headers)
        framing = headers.to_pylist() if has_headers else [None] * len(rows)
        is_key, writers = self._side.options.is_key, self._writers
        for data, each in zip(rows, framing, strict=True):
            value = reason = None
            if data is not None:
                try:
                    framed = unframe(data, [(pair["key"], pair["value"]) for pair in each] if each else (), is_key=is_key)
                    key = framed.id if framed.id >= 0 else framed.guid
                    read = writers.get(key) or self._writer(key)
                    value = read(data, framed)
                except NotFramed as problem:
                    reason = str(problem).removeprefix("it ")
                except Unreadable as problem:
                    reason = str(problem)
            values.append(value)
            reasons.append(reason)
        column = made_column(self.type, values, reasons)
        wanted = to_arrow_type(self.spark, timezone="UTC")  # the same but for the names of what is in lists
        return column if column.type == wanted else column.cast(wanted), reasons

    def _writer(self, key: int | str) -> Read:
        side = self._side
        try:
            schema = self._registry.schema(key) if isinstance(key, int) else self._registry.schema_of_guid(key)
        except RegistryRefusedError as refusal:
            if refusal.status != 404:
                raise
            raise Unreadable(f"has the schema {key}, which {side.options.address} does not know") from None
        if schema.kind != side.options.kind:
            raise Unreadable(f"was written with a schema of type {schema.kind}, and {side.options.side}.format says another")
        if side.evolution != KEEP and (schema.text, schema.kind) not in self._known:
            self._check(schema)
        found = self._writers[key] = self._language.reader_of(schema)
        return found

    def _check(self, schema: Schema) -> None:
        """Stop the query at a schema that was registered after it began, if the columns do not hold what it has."""
        side = self._side
        if not (changes := self._language.changes(schema)):
            return
        told = f"subject {side.subject} has a new schema, which the columns do not hold: {', '.join(changes)}"
        if side.evolution == WIDEN:
            raise SourceError(f"{told}. Start the query again: it reads on with the new columns")
        raise SourceError(
            f"{told}. Start the query again to read with the new schema, or let it go on without with schema.evolution=keep"
        )


@dataclass(frozen=True)
class Decoding:
    """What a task does with the record batches of the source."""

    sides: tuple[Side, ...]
    names: tuple[str, ...]
    """The columns that Spark asks for."""

    @property
    def read_names(self) -> list[str]:
        """The columns that are read for that: with the offsets for errors, and the headers, which may name schemas."""
        return list(dict.fromkeys((*self.names, "offset", "headers")))

    def applied(self, partition: TopicPartition, batch: Any) -> Any:
        """The batch with its keys and values decoded."""
        import pyarrow as pa

        columns = {name: batch.column(name) for name in batch.schema.names}
        with registry_errors(SourceError, f"records of {partition} cannot be decoded"):
            for side in self.sides:
                name = side.options.side
                columns[name], reasons = reader_of(side).decode(columns[name], columns["headers"])
                if side.bad_records != BAD_NULL:
                    self._check(partition, side, reasons, columns["offset"])
        return pa.RecordBatch.from_arrays([columns[name] for name in self.names], names=list(self.names))

    @staticmethod
    def _check(partition: TopicPartition, side: Side, reasons: Sequence[str | None], offsets: Any) -> None:
        row = next((row for row, reason in enumerate(reasons) if reason is not None), None)
        if row is not None:
            raise SourceError(
                f"the record of {partition} at offset {offsets[row].as_py()} cannot be decoded: the {side.options.side} "
                f"{reasons[row]}. With bad.records=null such records have null there; decode() can send them to another topic"
            )
