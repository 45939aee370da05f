"""`Declaration`: a stream or table over a topic, from its CREATE statement. Pure, but for the schema file and the registry."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ottla.errors.texts import near_words
from ottla.spark.errors import SparkOptionError
from ottla.spark.sql.errors import SqlError
from ottla.spark.sql.statements import STREAM, TABLE, Column, Create

SCALARS = {
    "string": "STRING",
    "uuid": "STRING",
    "int16": "SMALLINT",
    "int32": "INT",
    "int64": "BIGINT",
    "float32": "FLOAT",
    "float64": "DOUBLE",
    "bool": "BOOLEAN",
    "bytes": "BINARY",
}
"""Formats whose value is one column, and its type."""
AVRO = ("avro", "confluent-avro")
FORMATS = ("json", *AVRO, *SCALARS, "raw")
FORMAT_ALIASES = {"text": "string", "str": "string", "kafka": "raw", "binary": "bytes", "long": "int64", "int": "int32"}
KEY_FORMATS = ("string", "uuid", "int16", "int32", "int64", "bytes")
OPTIONS = {
    "topic": "the topic; its own name if it is left out",
    "format": f"how values are written: {', '.join(FORMATS)}",
    "key": "the column that is the record's key",
    "key_format": f"how keys are written: {', '.join(KEY_FORMATS)}",
    "schema": "the file of the Avro schema; if it is left out, the schema comes from the schema registry",
    "schema_registry": "the address of the schema registry; that of SET 'schema.registry.url' if it is left out",
    "subject": "the subject in the schema registry; TOPIC-value if it is left out",
    "partitions": "makes the topic with so many partitions if it is not there",
    "timestamp": "the column with the time of the event, for watermark",
    "watermark": "how late events may be in live queries, such as '10 minutes'",
}
ALIASES = {"kafka_topic": "topic", "value_format": "format", "schema_file": "schema"}
"""Names of ksqlDB and others."""
INSTEAD = {
    "connector": "leave it out; a table with the connector kafka is a STREAM here, one with upsert-kafka a TABLE",
    "properties.bootstrap.servers": "the brokers are those of --bootstrap-server: leave it out",
    "properties.group.id": "queries here join no consumer group: leave it out",
    "scan.startup.mode": "write SET 'auto.offset.reset'='earliest'",
    "replicas": "`ottla topics create` makes a topic with replicas; leave it out",
    "timestamp_format": "declare the column as TIMESTAMP; ISO 8601 is read",
    "value_avro_schema_full_name": "write subject='orders-value', or schema='orders.avsc'",
    "value_schema_id": "write subject='orders-value': the newest schema is taken",
    "wrap_single_value": "leave it out",
}
"""Options of ksqlDB and Flink, and what to do here."""
METADATA = {
    "_topic": "STRING",
    "_partition": "INT",
    "_offset": "BIGINT",
    "_timestamp": "TIMESTAMP",
    "_key": "BINARY",
    "_headers": "ARRAY<STRUCT<key: STRING, value: BINARY>>",
    "_error": "STRING",
}
"""Columns of every stream and table beside the declared ones. A statement that names one has it in its `*` too."""
RAW_COLUMNS = {
    "key": "BINARY",
    "value": "BINARY",
    "topic": "STRING",
    "partition": "INT",
    "offset": "BIGINT",
    "timestamp": "TIMESTAMP",
    "headers": METADATA["_headers"],
}
TEXT_COLUMNS = {
    "key": "STRING",
    "value": "STRING",
    **{n: RAW_COLUMNS[n] for n in ("topic", "partition", "offset", "timestamp")},
}
"""Those of a topic without a declaration."""


@dataclass(frozen=True)
class Declaration:
    """A stream or table."""

    name: str
    kind: str
    """STREAM or TABLE."""
    topic: str
    format: str
    columns: tuple[Column, ...] = ()
    """All columns; for Avro those of the schema, for raw those of records."""
    key: str | None = None
    """The column that is the record's key."""
    key_format: str = "string"
    schema: Any = None
    """The Avro schema, as JSON values."""
    timestamp: str | None = None
    watermark: str | None = None
    registry: str | None = None
    """The address of the schema registry that the Avro schema is from."""
    subject: str | None = None

    @property
    def sink_options(self) -> dict[str, str]:
        """What the sink must know to write values, beside where."""
        if self.registry is None or self.subject is None:
            return {}
        return {
            "schema.registry.url": self.registry,
            "value.format": "avro",
            "value.subject": self.subject,
            "schema.register": "latest",
        }

    @property
    def value_columns(self) -> tuple[Column, ...]:
        """The columns that values hold. With one-column formats the key is not among them."""
        is_scalar = self.format in SCALARS
        return tuple(each for each in self.columns if not (is_scalar and each.name == self.key))

    @property
    def ddl(self) -> str:
        """The value's columns for Spark."""
        return ", ".join(f"`{each.name}` {each.type}" for each in self.value_columns)

    def column(self, name: str) -> Column:
        """A column by its name, in any case."""
        return next(each for each in self.columns if each.name.lower() == name.lower())

    def as_json(self) -> dict[str, Any]:
        """What the catalog's file holds."""
        return {name: value for name, value in asdict(self).items() if value not in (None, ())}


def from_json(value: dict[str, Any]) -> Declaration:
    """A declaration that the catalog's file holds; KeyError and TypeError if it is none."""
    columns = tuple(Column(**each) for each in value.get("columns", ()))
    return Declaration(**{**value, "columns": columns})


def declaration_of(create: Create, registry: str | None = None) -> Declaration:
    """What a CREATE statement declares; `registry` is the address of the schema registry, if there is one."""
    options = _named_options(create)
    what = f"{create.kind} {create.name}"
    form = _format(options.get("format"), what)
    columns, key = create.columns, options.get("key") or next((each.name for each in create.columns if each.is_key), None)
    for column in columns:
        if column.name.lower() in METADATA:
            raise SqlError(f"{column.name} is a column of every record already: give the column of {what} another name")
    topic, schema, subject = options.get("topic") or create.name, None, None
    registry = options.get("schema_registry") or registry
    if form in AVRO:
        if "schema" in options or registry is None:
            schema, registry = _read_schema(options.get("schema"), what), None
        else:
            subject = options.get("subject") or f"{topic}-value"
            schema, form = _registered_schema(registry, subject, what), "confluent-avro"
        if columns:
            raise SqlError(f"the columns of {what} come from its Avro schema: leave the list of columns out")
    elif "schema" in options:
        raise SqlError(f"schema is for the format avro, and {what} is {form}: declare its columns in parentheses")
    else:
        registry = None
        for name in ("schema_registry", "subject"):
            if name in options:
                raise SqlError(f"{name} is for the format avro, and {what} is {form}: leave it out, or write format='avro'")
    if form == "json" and not columns:
        raise SqlError(f"{what} has no columns: write {create.name} (id BIGINT, amount DOUBLE), for example")
    if form == "raw":
        if columns or key is not None:
            raise SqlError(f"{what} is raw, so its columns are {', '.join(RAW_COLUMNS)}: leave columns and key out")
        columns = tuple(Column(name, kind) for name, kind in RAW_COLUMNS.items())
    if form in SCALARS:
        columns = _scalar_columns(columns, key, form, what)
    if key is not None and form not in AVRO:
        named = [each.name for each in columns if each.name.lower() == key.lower()]
        if not named:
            near = near_words(key, [each.name for each in columns])
            hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(each.name for each in columns)}"
            raise SqlError(f"key='{key}' is no column of {what}: {hint}")
        key = named[0]
    return Declaration(
        name=create.name,
        kind=create.kind,
        topic=topic,
        format=form,
        columns=tuple(Column(each.name, each.type) for each in columns),
        key=key,
        key_format=_key_format(options.get("key_format"), what),
        schema=schema,
        timestamp=_timestamp(options, columns, form, what),
        watermark=options.get("watermark"),
        registry=registry,
        subject=subject,
    )


def undeclared(topic: str) -> Declaration:
    """A topic that is queried by its name alone: keys and values as text."""
    return Declaration(topic, STREAM, topic, "text", tuple(Column(name, kind) for name, kind in TEXT_COLUMNS.items()))


def partitions_wanted(create: Create) -> int | None:
    """The option `partitions` as a number."""
    text = create.options.get("partitions")
    if text is None:
        return None
    if not text.isdigit() or not int(text):
        raise SqlError(f"partitions is {text!r} in WITH: it must be a number from 1 on")
    return int(text)


def _named_options(create: Create) -> dict[str, str]:
    found: dict[str, str] = {}
    for given, value in create.options.items():
        name = ALIASES.get(given, given)
        if name in INSTEAD:
            raise SqlError(f"{given} is no option of CREATE {create.kind.upper()}: {INSTEAD[name]}")
        if name not in OPTIONS:
            near = near_words(given, [*OPTIONS, *ALIASES])
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(OPTIONS)}"
            raise SqlError(f"{given} is no option of CREATE {create.kind.upper()}: {hint}")
        if name in found:
            raise SqlError(f"{given} is given twice in WITH, under another name: give {name} once")
        found[name] = value
    if create.kind == TABLE and create.query is not None:
        raise SqlError("CREATE TABLE … AS SELECT over topics is not there: CREATE STREAM … AS SELECT is, and `ottla pipeline`")
    partitions_wanted(create)
    return found


def _format(text: str | None, what: str) -> str:
    if text is None:
        raise SqlError(f"the format of {what} is missing: add format='json' in WITH, or one of {', '.join(FORMATS[1:])}")
    lower = FORMAT_ALIASES.get(text.lower(), text.lower())
    if lower not in FORMATS:
        near = near_words(lower, [*FORMATS, *FORMAT_ALIASES])
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(FORMATS)}"
        raise SqlError(f"format='{text}' of {what} is none that there is: {hint}")
    return lower


def _key_format(text: str | None, what: str) -> str:
    chosen = FORMAT_ALIASES.get((text or "string").lower(), (text or "string").lower())
    if chosen not in KEY_FORMATS:
        raise SqlError(f"key_format='{text}' of {what} is none that there is: use {', '.join(KEY_FORMATS)}")
    return chosen


def _scalar_columns(columns: tuple[Column, ...], key: str | None, form: str, what: str) -> tuple[Column, ...]:
    if not columns:
        return (Column("value", SCALARS[form]), *([Column(key, "STRING")] if key else []))
    values = [each for each in columns if key is None or each.name.lower() != key.lower()]
    if len(values) != 1:
        raise SqlError(f"{what} has {len(values)} columns for its values: the format {form} has one, of type {SCALARS[form]}")
    if values[0].type.upper() != SCALARS[form]:
        raise SqlError(f"the column {values[0].name} of {what} is {values[0].type}: the format {form} is {SCALARS[form]}")
    return columns


def _timestamp(options: dict[str, str], columns: tuple[Column, ...], form: str, what: str) -> str | None:
    name = options.get("timestamp")
    if name is None:
        return None
    if "watermark" not in options:
        raise SqlError(f"timestamp='{name}' of {what} is used with watermark: add watermark='10 minutes', or leave it out")
    if form in AVRO:
        return name
    for each in columns:
        if each.name.lower() == name.lower():
            if not each.type.upper().startswith("TIMESTAMP"):
                raise SqlError(f"timestamp='{name}' of {what} is {each.type}: declare the column as TIMESTAMP")
            return each.name
    raise SqlError(f"timestamp='{name}' is no column of {what}: it has {', '.join(each.name for each in columns)}")


def _registered_schema(registry: str, subject: str, what: str) -> Any:
    from ottla.spark.registry.avro import RegistryLookup  # late: it brings the packages of schemas

    try:
        return RegistryLookup(registry).newest(subject)
    except SparkOptionError as problem:
        raise SqlError(f"{what} has no columns: {problem}") from None


def _read_schema(path: str | None, what: str) -> Any:
    if path is None:
        raise SqlError(
            f"{what} is Avro: name the schema registry with SET 'schema.registry.url'='http://localhost:8081', or say where "
            "its schema is with schema='orders.avsc' in WITH"
        )
    try:
        return json.loads(Path(path).expanduser().read_text(encoding="utf-8"))
    except OSError as error:
        raise SqlError(f"schema='{path}' of {what} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise SqlError(f"schema='{path}' of {what} is no JSON: {error}") from None
