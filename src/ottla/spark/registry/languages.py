"""What a schema means in Spark: the columns it has, and how one value is read into them. For each language of schemas.

Avro's types are those of `decoding/avro.py`. Of JSON Schema: objects with properties are structs, other objects with a schema
of their values maps, integer a bigint, number a double; what has no single type is a string with JSON text. Of Protobuf:
messages are structs, enums strings, google.protobuf.Timestamp a timestamp, wrappers nullable scalars; Struct, Value and Any are
strings with JSON text. Recursive types have no columns and are refused.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ottla.schemas.framing import Framed, NotFramed, read_indexes
from ottla.spark.decoding.avro import AvroReader, AvroType, UnreadableAvro, avro_changes, avro_type, parsed_avro, plain_schema
from ottla.spark.errors import SparkOptionError

if TYPE_CHECKING:
    from ottla.schemas import Schema, SchemaRegistry

ColumnType = AvroType
"""A column's type, as Spark's DDL and in Arrow."""
Read = Callable[[bytes, Framed], Any]
"""Reads the value of a record, from where its frame ends. Raises `Unreadable`."""


class Unreadable(ValueError):
    """The bytes are no value of the schema. The text continues a sentence: "the value …"."""


class Language(ABC):
    """The columns of one schema, and how values are read into them. Made in the driver and in each worker."""

    type: ColumnType

    @abstractmethod
    def reader_of(self, schema: Schema) -> Read:
        """What reads values that were written with `schema`."""

    @abstractmethod
    def changes(self, schema: Schema) -> list[str]:
        """What `schema` has that these columns do not hold: fields, or other types."""


def language_of(kind: str, registry: SchemaRegistry, schemas: Sequence[Schema], message: str | None) -> Language:
    """The columns of a schema; of several, all that they have together, oldest first."""
    package = {"AVRO": "fastavro", "PROTOBUF": "google.protobuf"}.get(kind)
    if package is not None:
        try:
            import_module(package)
        except ImportError:
            name = package.removeprefix("google.")
            raise SparkOptionError(
                f"{kind.lower()} needs the package {name} where Spark's driver and workers run: pip install 'ottla[registry]' "
                f"there, or ship it (packages: [{name}])"
            ) from None
    if kind == "AVRO":
        return Avro(registry, schemas)
    return Json(schemas) if kind == "JSON" else Protobuf(registry, schemas[-1], message)


# Avro


class Avro(Language):
    """Reads with Avro's resolution: fields by name, promoted numbers, defaults."""

    def __init__(self, registry: SchemaRegistry, schemas: Sequence[Schema]) -> None:
        self._registry = registry
        expanded = [expanded_avro(registry, each) for each in schemas]
        self.schema = expanded[-1]
        if len(expanded) > 1:
            self.schema = expanded[0]
            for each in expanded[1:]:
                self.schema = united_avro(self.schema, each)
        self.type = avro_type(self.schema)
        self._reader: AvroReader | None = None

    def reader_of(self, schema: Schema) -> Read:
        import fastavro

        if self._reader is None:
            self._reader = AvroReader(self.schema, self.type, False, None)
        written = expanded_avro(self._registry, schema)
        reader, writer = self._reader, fastavro.parse_schema(plain_schema(written))
        changes = ", ".join(avro_changes(written, self.schema)) or None

        def read(data: bytes, framed: Framed) -> Any:
            try:
                return reader.read(data, framed.start, writer, changes)
            except UnreadableAvro as problem:
                raise Unreadable(str(problem)) from None

        return read

    def changes(self, schema: Schema) -> list[str]:
        found = avro_changes(expanded_avro(self._registry, schema), self.schema)
        return [each for each in found if not each.endswith(" is gone") and not _is_narrower(each)]


def _is_narrower(change: str) -> bool:
    """Whether a column of a wider type takes the values as they are."""
    now, _, before = change.partition(" is ")[2].partition(" instead of ")
    order = ("int", "long", "float", "double")
    return now in order and before in order and order.index(now) < order.index(before)


def expanded_avro(registry: SchemaRegistry, schema: Schema) -> Any:
    """The schema with the definitions of the types that it references, each where it is first used."""
    imported = [parsed_avro(each.text, f"the schema {name}") for name, each in registry.imports(schema)]
    parsed = parsed_avro(schema.text if schema.text.strip()[:1] in '{["' else f'"{schema.text.strip()}"', "the schema")
    if not imported:
        return parsed
    named = {_full_name(each, ""): each for each in imported if isinstance(each, Mapping)}
    seen: set[str] = set()

    def expand(part: Any, namespace: str) -> Any:
        if isinstance(part, list):
            return [expand(each, namespace) for each in part]
        if isinstance(part, str):
            full = part if part in named else f"{namespace}.{part}"
            if full not in named or full in seen:
                return part
            seen.add(full)
            return expand(named[full], namespace)
        if not isinstance(part, Mapping):
            return part
        inner = part.get("namespace", namespace)
        made = {name: expand(value, inner) if name in ("type", "items", "values") else value for name, value in part.items()}
        if "fields" in part:
            made["fields"] = [{**field, "type": expand(field["type"], inner)} for field in part["fields"]]
        return made

    return expand(parsed, "")


def _full_name(schema: Mapping[str, Any], namespace: str) -> str:
    name, space = str(schema.get("name", "")), schema.get("namespace", namespace)
    return name if "." in name or not space else f"{space}.{name}"


_WIDE = ("int", "long", "float", "double")


def united_avro(old: Any, new: Any) -> Any:
    """A schema that both can be read with: the fields of both, those of one alone nullable, and the wider of two numbers."""
    if isinstance(old, list) or isinstance(new, list):
        olds, news = (each if isinstance(each, list) else [each] for each in (old, new))
        ours, theirs = ([each for each in kinds if each != "null"] for kinds in (olds, news))
        if len(ours) == len(theirs) == 1:
            return ["null", united_avro(ours[0], theirs[0])]
        return new
    if isinstance(old, str) and isinstance(new, str) and old in _WIDE and new in _WIDE:
        return max(old, new, key=_WIDE.index)
    if not (isinstance(old, Mapping) and isinstance(new, Mapping)) or old.get("type") != new.get("type"):
        return new
    if new.get("type") == "array":
        return {**new, "items": united_avro(old["items"], new["items"])}
    if new.get("type") == "map":
        return {**new, "values": united_avro(old["values"], new["values"])}
    if new.get("type") == "enum":
        return {**new, "symbols": [*new["symbols"], *(each for each in old["symbols"] if each not in new["symbols"])]}
    if new.get("type") != "record":
        return new
    before = {field["name"]: field for field in old["fields"]}
    fields = []
    for field in new["fields"]:
        if field["name"] in before:
            both = {**field, "type": united_avro(before.pop(field["name"])["type"], field["type"])}
            # Nullable also if an older one of several lacked it: it needs its default then.
            fields.append(_optional(both) if isinstance(both["type"], list) else both)
        else:
            fields.append(_optional(field))
    return {**new, "fields": [*fields, *map(_optional, before.values())]}


def _optional(field: Mapping[str, Any]) -> dict[str, Any]:
    kinds = field["type"] if isinstance(field["type"], list) else [field["type"]]
    return {**field, "type": ["null", *(each for each in kinds if each != "null")], "default": None}


# JSON Schema


class Json(Language):
    """Reads JSON into the properties of the schema. Whether the value keeps all of the schema's rules is not checked."""

    def __init__(self, schemas: Sequence[Schema]) -> None:
        self.schema = _json_root(schemas[0])
        for each in schemas[1:]:
            self.schema = _united_json(self.schema, _json_root(each))
        self.type, self._convert = _json_type(self.schema, self.schema, "", ())

    def reader_of(self, schema: Schema) -> Read:
        convert = self._convert

        def read(data: bytes, framed: Framed) -> Any:
            try:
                value = json.loads(data[framed.start :])
            except ValueError as problem:
                raise Unreadable(f"is not JSON: {problem}") from None
            return convert(value, "")

        return read

    def changes(self, schema: Schema) -> list[str]:
        theirs, ours = (dict(_json_fields(root, root, "", ())) for root in (_json_root(schema), self.schema))
        return sorted(
            f"{name} is new" if name not in ours else f"{name} is {kind} instead of {ours[name]}"
            for name, kind in theirs.items()
            if ours.get(name) not in (kind, "string" if name in ours and kind == "any" else kind)
            and not (kind == "bigint" and ours.get(name) == "double")
        )


Convert = Callable[[Any, str], Any]


def _json_root(schema: Schema) -> Any:
    return json.loads(schema.text)


def _united_json(old: Any, new: Any) -> Any:
    if not (isinstance(old, dict) and isinstance(new, dict)) or "properties" not in old or "properties" not in new:
        if isinstance(old, dict) and isinstance(new, dict) and {old.get("type"), new.get("type")} == {"integer", "number"}:
            return {**new, "type": "number"}
        return new
    both = {
        name: _united_json(old["properties"][name], each) if name in old["properties"] else each
        for name, each in new["properties"].items()
    }
    definitions = {name: {**old.get(name, {}), **new[name]} for name in ("$defs", "definitions") if name in new}
    return {
        **old,
        **new,
        **definitions,
        "properties": {**both, **{n: e for n, e in old["properties"].items() if n not in both}},
    }


def _resolved_json(schema: Any, root: Any, path: str, inside: tuple[str, ...]) -> tuple[Any, tuple[str, ...]]:
    """The schema that a `$ref` within the document names, or the one that is not null of two."""
    while isinstance(schema, dict):
        if isinstance(ref := schema.get("$ref"), str):
            if ref in inside:
                raise SparkOptionError(
                    f"the JSON schema is recursive: {path or 'its top'} contains {ref} again, which no column type can"
                )
            inside = (*inside, ref)
            found = root
            for part in ref.removeprefix("#").split("/")[1:]:
                found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
            if not ref.startswith("#") or found is None:
                return True, inside  # in another document: JSON text
            schema = found
            continue
        choices = schema.get("oneOf") or schema.get("anyOf")
        if isinstance(choices, list):
            kinds = [each for each in choices if not (isinstance(each, dict) and each.get("type") == "null")]
            if len(kinds) == 1:
                schema = kinds[0]
                continue
            return True, inside
        return schema, inside
    return schema, inside


_JSON_SCALARS: dict[str, tuple[str, str, tuple[type, ...]]] = {
    "integer": ("bigint", "int64", (int,)),
    "number": ("double", "float64", (int, float)),
    "string": ("string", "string", (str,)),
    "boolean": ("boolean", "bool_", (bool,)),
}


def _kind_of(schema: Any) -> str | None:
    kinds = schema.get("type") if isinstance(schema, dict) else None
    if isinstance(kinds, list):
        kinds = [each for each in kinds if each != "null"]
        kinds = kinds[0] if len(kinds) == 1 else None
    if kinds is None and isinstance(schema, dict) and "properties" in schema:
        return "object"
    return kinds


def _json_type(schema: Any, root: Any, path: str, inside: tuple[str, ...]) -> tuple[ColumnType, Convert]:
    import pyarrow as pa

    schema, inside = _resolved_json(schema, root, path, inside)
    kind = _kind_of(schema)
    if kind in _JSON_SCALARS:
        spark, arrow, allowed = _JSON_SCALARS[kind]
        made = getattr(pa, arrow)()

        def scalar(value: Any, at: str) -> Any:
            if value is None or (isinstance(value, allowed) and (kind == "boolean" or not isinstance(value, bool))):
                return value
            if kind == "integer" and isinstance(value, float) and value.is_integer():
                return int(value)
            raise Unreadable(f"does not fit the columns: {at or 'it'} is {json.dumps(value)[:40]}, which is no {kind}")

        return AvroType(spark, made, made), scalar
    if kind == "array" and "items" in schema:
        each, convert = _json_type(schema["items"], root, f"{path}[]", inside)

        def array(value: Any, at: str) -> Any:
            if value is not None and not isinstance(value, list):
                raise Unreadable(f"does not fit the columns: {at or 'it'} is no array")
            return None if value is None else [convert(item, f"{at}[]") for item in value]

        return AvroType(f"array<{each.spark}>", pa.list_(each.read), pa.list_(each.made)), array
    if kind == "object" and schema.get("properties"):
        parts = {
            name: _json_type(sub, root, f"{path}.{name}".lstrip("."), inside) for name, sub in schema["properties"].items()
        }

        def struct(value: Any, at: str) -> Any:
            if value is not None and not isinstance(value, dict):
                raise Unreadable(f"does not fit the columns: {at or 'it'} is no object")
            return None if value is None else {n: c(value.get(n), f"{at}.{n}".lstrip(".")) for n, (_, c) in parts.items()}

        spark = ",".join(f"`{name}`:{part.spark}" for name, (part, _) in parts.items())
        arrow_type = pa.struct([(name, part.read) for name, (part, _) in parts.items()])
        return AvroType(f"struct<{spark}>", arrow_type, arrow_type), struct
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        each, convert = _json_type(schema["additionalProperties"], root, f"{path}{{}}", inside)

        def mapping(value: Any, at: str) -> Any:
            if value is not None and not isinstance(value, dict):
                raise Unreadable(f"does not fit the columns: {at or 'it'} is no object")
            return None if value is None else [(name, convert(item, f"{at}.{name}")) for name, item in value.items()]

        text = pa.string()
        return AvroType(f"map<string,{each.spark}>", pa.map_(text, each.read), pa.map_(text, each.made)), mapping
    return AvroType("string", pa.string(), pa.string()), _json_text


def _json_text(value: Any, at: str) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _json_fields(schema: Any, root: Any, path: str, inside: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The properties of a schema and of the objects in it, each with its type."""
    schema, inside = _resolved_json(schema, root, path, inside)
    if _kind_of(schema) == "object" and schema.get("properties"):
        for name, sub in schema["properties"].items():
            yield from _json_fields(sub, root, f"{path}.{name}".lstrip("."), inside)
    elif path:
        yield path, _json_type(schema, root, path, inside)[0].spark


# Protobuf


class Protobuf(Language):
    """Reads the columns' message, by the numbers of its fields."""

    def __init__(self, registry: SchemaRegistry, schema: Schema, message: str | None) -> None:
        self._registry = registry
        self._message = proto_message(registry, schema, message)
        self.type, self._convert = _message_type(self._message, "", ())

    def reader_of(self, schema: Schema) -> Read:
        from google.protobuf import message_factory
        from google.protobuf.message import DecodeError

        theirs = list(_proto_file(self._registry, schema).message_types_by_name.values())
        kind, convert, name = message_factory.GetMessageClass(self._message), self._convert, self._message.full_name

        def read(data: bytes, framed: Framed) -> Any:
            try:
                if framed.indexes:
                    indexes, start = read_indexes(framed.indexes)[0], framed.start
                else:
                    indexes, start = read_indexes(data, framed.start)
                written = theirs[indexes[0]]
                for each in indexes[1:]:
                    written = written.nested_types[each]
            except (NotFramed, IndexError):
                raise Unreadable("has message indexes that lead to no message of its schema") from None
            if written.full_name != name:
                raise Unreadable(f"is a {written.full_name}, and the columns are those of {name}: choose with value.message")
            try:
                return convert(kind.FromString(data[start:]))
            except DecodeError as problem:
                raise Unreadable(f"is no {name}: {problem}") from None

        return read

    def changes(self, schema: Schema) -> list[str]:
        messages = {
            each.full_name: each for each in _all_messages(_proto_file(self._registry, schema).message_types_by_name.values())
        }
        theirs = messages.get(self._message.full_name)
        if theirs is None:
            return []
        return sorted(_proto_changes(theirs, self._message, "", ()))


def proto_message(registry: SchemaRegistry, schema: Schema, message: str | None) -> Any:
    """The message of a .proto file that is meant."""
    messages = {each.full_name: each for each in _all_messages(_proto_file(registry, schema).message_types_by_name.values())}
    if not messages:
        raise SparkOptionError("the .proto file of the subject has no message, so there are no columns")
    found = [name for name in messages if message is None or name == message or name.endswith(f".{message}")]
    if not found:
        raise SparkOptionError(f"the .proto file of the subject has no message {message}: there are {', '.join(messages)}")
    return messages[found[0]]


def _proto_file(registry: SchemaRegistry, schema: Schema) -> Any:
    from ottla.schemas.languages import Imported, Source
    from ottla.schemas.languages.protobuf import built

    imports = tuple(Imported(name, "", 0, each.text) for name, each in registry.imports(schema))
    return built(Source("PROTOBUF", schema.text, imports))


def _all_messages(messages: Any) -> Iterator[Any]:
    for each in messages:
        if not each.GetOptions().map_entry:
            yield each
            yield from _all_messages(each.nested_types)


def _proto_changes(theirs: Any, ours: Any, path: str, inside: tuple[str, ...]) -> Iterator[str]:
    for number, field in theirs.fields_by_number.items():
        mine = ours.fields_by_number.get(number)
        name = f"{path}{field.name}"
        if mine is None:
            yield f"{name} is new"
        elif field.type != mine.type or field.is_repeated != mine.is_repeated:
            yield f"{name} has another type"
        elif field.message_type is not None and field.message_type.full_name not in (*inside, *_WELL_KNOWN):
            yield from _proto_changes(
                field.message_type, mine.message_type, f"{name}.", (*inside, field.message_type.full_name)
            )
        elif field.enum_type is not None:
            for value in field.enum_type.values:
                if value.number not in mine.enum_type.values_by_number:
                    yield f"{name} has the new symbol {value.name}"


_INT, _LONG, _UNSIGNED_LONG = ("int", "int32"), ("bigint", "int64"), ("decimal(20,0)", None)
_PROTO_SCALARS: dict[int, tuple[str, str | None]] = {
    1: ("double", "float64"), 2: ("float", "float32"), 8: ("boolean", "bool_"), 9: ("string", "string"),
    12: ("binary", "binary"), 5: _INT, 15: _INT, 17: _INT, 3: _LONG, 7: _LONG, 13: _LONG, 16: _LONG, 18: _LONG,
    4: _UNSIGNED_LONG, 6: _UNSIGNED_LONG,
}  # fmt: skip
"""By the number of a field's type. Unsigned numbers have the next wider column."""
_WRAPPERS = tuple(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
_AS_JSON = tuple(f"google.protobuf.{name}" for name in ("Struct", "Value", "ListValue", "Any", "Duration", "FieldMask"))
_WELL_KNOWN = (*_WRAPPERS, *_AS_JSON, "google.protobuf.Timestamp")
ENUM = 14


def _message_type(message: Any, path: str, inside: tuple[str, ...]) -> tuple[ColumnType, Callable[[Any], Any]]:
    import pyarrow as pa

    if message.full_name in inside:
        raise SparkOptionError(
            f"the Protobuf message is recursive: {path or message.full_name} contains {message.full_name} again, which no "
            "column type can"
        )
    if not message.fields:
        raise SparkOptionError(f"the Protobuf message {message.full_name} has no fields, which no column type can")
    parts = [
        (field, *_field_type(field, f"{path}.{field.name}".lstrip("."), (*inside, message.full_name)))
        for field in message.fields
    ]

    def convert(value: Any) -> dict[str, Any]:
        return {
            field.name: None if field.has_presence and not value.HasField(field.name) else read(getattr(value, field.name))
            for field, _, read in parts
        }

    spark = ",".join(f"`{field.name}`:{part.spark}" for field, part, _ in parts)
    arrow = pa.struct([(field.name, part.read) for field, part, _ in parts])
    return AvroType(f"struct<{spark}>", arrow, arrow), convert


def _field_type(field: Any, path: str, inside: tuple[str, ...]) -> tuple[ColumnType, Callable[[Any], Any]]:
    import pyarrow as pa

    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        (key, _), (value, read) = (
            _single_type(field.message_type.fields_by_name[name], path, inside) for name in ("key", "value")
        )
        made = pa.map_(key.read, value.read)
        return AvroType(f"map<{key.spark},{value.spark}>", made, made), lambda found: [(k, read(found[k])) for k in found]
    each, read = _single_type(field, path, inside)
    if field.is_repeated:
        return AvroType(f"array<{each.spark}>", pa.list_(each.read), pa.list_(each.read)), lambda found: list(map(read, found))
    return each, read


def _single_type(field: Any, path: str, inside: tuple[str, ...]) -> tuple[ColumnType, Callable[[Any], Any]]:
    import pyarrow as pa

    message = field.message_type
    if message is None:
        if field.type == ENUM:
            names = {each.number: each.name for each in field.enum_type.values}
            return AvroType("string", pa.string(), pa.string()), lambda number: names.get(number, str(number))
        spark, arrow = _PROTO_SCALARS[field.type]
        made = pa.decimal128(20, 0) if arrow is None else getattr(pa, arrow)()
        return AvroType(spark, made, made), _decimal if arrow is None else _same
    if message.full_name == "google.protobuf.Timestamp":
        kind = pa.timestamp("us", tz="UTC")
        return AvroType("timestamp", kind, kind), lambda value: value.seconds * 1_000_000 + value.nanos // 1000
    if message.full_name in _WRAPPERS:
        each, read = _single_type(message.fields_by_name["value"], path, inside)
        return each, lambda wrapped: read(wrapped.value)
    if message.full_name in _AS_JSON:
        return AvroType("string", pa.string(), pa.string()), _message_json
    return _message_type(message, path, inside)


def _same(value: Any) -> Any:
    return value


def _decimal(value: int) -> Any:
    from decimal import Decimal

    return Decimal(value)


def _message_json(value: Any) -> str:
    from google.protobuf.json_format import MessageToDict

    return json.dumps(MessageToDict(value), ensure_ascii=False, separators=(",", ":"))
