"""What bytes are and how they are shown: JSON, text, numbers, UUIDs, schemas of a registry, records of Kafka's own topics.

A `Reader` reads the keys and values of one topic. With the form `auto` it looks at each of them; where a few bytes could be
text or a number, it follows what most records of the topic are (`learn`). What does not fit a form is shown as what it seems
to be. Readers may ask a schema registry: call them in a worker thread.
"""

from __future__ import annotations

import base64
import json
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from struct import pack, unpack
from typing import Any, Final, NamedTuple, Protocol

from ottla.errors import ConfigError, OttlaError
from ottla.records.control import parse_control_type
from ottla.schemas.client import SchemaRegistry
from ottla.schemas.framing import BY_GUID, BY_ID, KEY_HEADER, VALUE_HEADER, unframe
from ottla.wire.json_form import to_json
from ottla.wire.log_records import InternalLog, decode_coordinator_key, decode_coordinator_value

FORMS: Final = ("auto", "json", "text", "hex", "base64", "int32", "int64", "float64", "uuid", "schema")
"""What a page offers. `schema`: by the schema registry."""
WRITABLE: Final = ("text", "json", "hex", "base64", "int32", "int64", "float64", "uuid")
PREVIEW_CHARACTERS = 300
WHOLE_CHARACTERS = 64 * 1024
_BINARY: Final = ("int32", "int64", "float64", "uuid", "hex")
_INTERNAL: Final = {"__consumer_offsets": InternalLog.GROUPS, "__transaction_state": InternalLog.TRANSACTIONS}
_CONTROL: Final = {0: "transaction aborted", 1: "transaction committed"}
REGISTRY_S = 0.4
"""How long one attempt at the registry may take: a page must be there within two seconds."""
REGISTRY_PAUSE_S = 10.0
"""A registry that did not answer is not asked again for this long."""

Headers = Sequence[tuple[str, bytes | None]]


class Content(NamedTuple):
    """A key or value as a page shows it."""

    form: str
    preview: str
    text: str
    """In full, JSON indented; cut at the limit that was given."""
    size: int
    is_cut: bool
    note: str = ""
    """Which schema it was written with, or why its own form could not be read."""


class Bare(Protocol):
    """What a reader needs of a record."""

    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Headers: ...


class Read(NamedTuple):
    """Bytes that were read: their form, and text, or a value as JSON has it."""

    form: str
    value: Any
    is_parsed: bool
    note: str = ""

    def text(self) -> str:
        if not self.is_parsed:
            return str(self.value)
        return json.dumps(self.value, indent=2, ensure_ascii=False, default=str)


class Schemas:
    """Reads what was written with schemas of a registry. Thread-safe as far as the registry's client is."""

    def __init__(self, url: str) -> None:
        self.registry = SchemaRegistry(url, timeout_s=REGISTRY_S)
        self._silent_until_s = 0.0
        self._readers: dict[tuple[str, bool], Any] = {}

    def read(self, topic: str, data: bytes, headers: Headers, *, is_key: bool) -> Read:
        """Raises an error if it was not written so, or if the registry does not answer."""
        if time.monotonic() < self._silent_until_s:
            raise OttlaError("the schema registry does not answer")
        framed = unframe(data, headers, is_key=is_key)
        try:
            schema = self.registry.schema(framed.id) if framed.id >= 0 else self.registry.schema_of_guid(framed.guid)
        except OttlaError as problem:
            if not getattr(problem, "status", 0):
                self._silent_until_s = time.monotonic() + REGISTRY_PAUSE_S
            raise
        found = self._reader(schema.kind, is_key).deserialize(topic, headers, data)
        if schema.kind == "PROTOBUF":
            from google.protobuf.json_format import MessageToDict

            found = MessageToDict(found, preserving_proto_field_name=True)
        form = {"AVRO": "avro", "PROTOBUF": "protobuf", "JSON": "json schema"}[schema.kind]
        return Read(form, found, True, f"schema {framed.id if framed.id >= 0 else framed.guid}")

    def _reader(self, kind: str, is_key: bool) -> Any:
        found = self._readers.get((kind, is_key))
        if found is None:
            # Each needs a package of the registry's extra, which a console without a registry does not have.
            if kind == "AVRO":
                from ottla.schemas.avro import AvroDeserializer

                found = AvroDeserializer(self.registry)
            elif kind == "PROTOBUF":
                from ottla.schemas.protobuf import ProtobufDeserializer

                found = ProtobufDeserializer(self.registry)
            else:
                from ottla.schemas.json_schema import JsonSchemaDeserializer

                found = JsonSchemaDeserializer(self.registry, validate=False)
            found = self._readers[kind, is_key] = found.for_key() if is_key else found
        return found


class Reader:
    """Reads the keys and values of a topic's records."""

    def __init__(
        self,
        topic: str,
        key_form: str = "auto",
        value_form: str = "auto",
        schemas: Schemas | None = None,
    ) -> None:
        self.topic = topic
        self.forms = {"key": key_form, "value": value_form}
        self._schemas = schemas
        self._log = _INTERNAL.get(topic)
        self._common: dict[str, str] = {}

    def learn(self, records: Iterable[Bare]) -> None:
        """What most records are decides where a few bytes could be text or a number."""
        some = list(records)[:100]
        self._common = {"key": common_form(each.key for each in some), "value": common_form(each.value for each in some)}

    @property
    def is_raw(self) -> bool:
        """Whether searches may look into the bytes as they are: keys and values are JSON or text."""
        forms = {
            self.forms[part] if self.forms[part] != "auto" else self._common.get(part, "text") for part in ("key", "value")
        }
        return self._log is None and self._schemas is None and forms <= {"json", "text"}

    def read(self, record: Bare, part: str) -> Read:
        """The key or value of a record, in its form."""
        data = record.key if part == "key" else record.value
        if data is None:
            return Read("null", None, True)
        form, note = self.forms[part], ""
        try:
            if form == "auto":
                if self._log is not None:
                    return self._internal(self._log, record, part)
                if self._schemas is not None and self._is_framed(data, record, part):
                    return self._schemas.read(self.topic, data, record.headers, is_key=part == "key")
                form = self._common.get(part, "")
                form = form if form in _BINARY else form_of(data)
            elif form == "schema":
                if self._schemas is None:
                    raise ConfigError("the console knows no schema registry: start it with --schema-registry URL")
                return self._schemas.read(self.topic, data, record.headers, is_key=part == "key")
            return _read(data, form)
        except Exception as problem:  # hostile bytes: any decoder may fail in its own way
            if form not in _BINARY:
                note = str(problem) or type(problem).__name__
        return _read(data, form_of(data))._replace(note=note)

    def _is_framed(self, data: bytes, record: Bare, part: str) -> bool:
        wanted = KEY_HEADER if part == "key" else VALUE_HEADER
        return (len(data) > 5 and data[0] in (BY_ID, BY_GUID)) or any(name == wanted for name, _ in record.headers)

    def _internal(self, log: InternalLog, record: Bare, part: str) -> Read:
        key = decode_coordinator_key(log, record.key or b"")
        kind = type(key).__name__.removesuffix("Key")
        if part == "key":
            return Read("kafka", {"type": kind, **to_json(key, 0)}, True)
        message, version = decode_coordinator_value(log, key, record.value or b"")
        return Read("kafka", {"version": version, **to_json(message, version)}, True)

    def content(self, record: Bare, part: str, limit: int = WHOLE_CHARACTERS, is_control: bool = False) -> Content:
        """What a page shows of a key or value."""
        data = record.key if part == "key" else record.value
        if data is None:
            return Content("null", "null", "null", 0, False)
        if is_control:
            kind = _CONTROL.get(parse_control_type(record.key), "control record")
            text = kind if part == "key" else data.hex(" ")
            return Content("control", text, text, len(data), False)
        found = self.read(record, part)
        text = found.text()
        preview = json.dumps(found.value, ensure_ascii=False, default=str) if found.is_parsed else text
        if len(preview) > PREVIEW_CHARACTERS:
            preview = preview[:PREVIEW_CHARACTERS] + "…"
        return Content(found.form, preview, text[:limit], len(data), len(text) > limit, found.note)

    def plain(self, record: Bare, part: str) -> tuple[str, Any]:
        """For downloads: the form, and parsed JSON or the text that is shown. `parse` makes the same bytes of them again."""
        found = self.read(record, part)
        return found.form, found.value


_UNREAD: Final = object()
_scan_json: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder().scan_once  # type: ignore[attr-defined]  # not in the stubs


def _json_of(data: bytes | None) -> Any:
    """What JSON holds; None for what is no JSON. Half the time of `json.loads`, which looks for white space with patterns."""
    if not data:
        return None
    try:
        text = data.decode()
        found, end = _scan_json(text, 0)
        if end == len(text):
            return found
        return json.loads(text)
    except StopIteration:
        pass
    except (ValueError, RecursionError):
        return None
    try:
        return json.loads(text)  # white space before it
    except (ValueError, RecursionError):
        return None


class Candidate:
    """A record as a search sees it: read when the search asks, once."""

    __slots__ = ("_key", "_reader", "_texts", "_value", "offset", "partition", "record", "timestamp")

    def __init__(self, record: Any, partition: int, reader: Reader | None) -> None:
        self.record = record
        self.partition = partition
        self.offset: int = record.offset
        self.timestamp: int = record.timestamp
        self._reader = reader
        """None: keys and values are searched as they are."""
        self._key: Any = _UNREAD
        self._value: Any = _UNREAD
        self._texts: dict[str, bytes] | None = None

    @property
    def headers(self) -> Headers:
        headers: Headers = self.record.headers
        return headers

    @property
    def size(self) -> int:
        return len(self.record.key or b"") + len(self.record.value or b"")

    def data(self, part: str) -> bytes | None:
        data: bytes | None = self.record.key if part == "key" else self.record.value
        if self._reader is None or data is None:
            return data
        if self._texts is None:
            self._texts = {}
        if part not in self._texts:
            found = self._reader.read(self.record, part)
            text = found.value if isinstance(found.value, str) else json.dumps(found.value, ensure_ascii=False, default=str)
            is_plain = found.form in ("json", "text") and not found.note
            self._texts[part] = data if is_plain else text.encode("utf-8", "replace")
        return self._texts[part]

    def parsed(self, part: str) -> Any:
        if part == "value":
            if self._value is _UNREAD:
                self._value = _json_of(self.record.value) if self._reader is None else self._parse(part)
            return self._value
        if self._key is _UNREAD:
            self._key = _json_of(self.record.key) if self._reader is None else self._parse(part)
        return self._key

    def _parse(self, part: str) -> Any:
        assert self._reader is not None
        found = self._reader.read(self.record, part)
        if found.form in ("int32", "int64", "float64") and not found.note:
            return json.loads(found.value)
        return found.value if found.is_parsed else None


def form_of(data: bytes) -> str:
    """The form that bytes seem to have."""
    if not data:
        return "text"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return {4: "int32", 8: "int64", 16: "uuid"}.get(len(data), "hex")
    if data[:1] in b'{["' or text.strip() in ("null", "true", "false"):
        try:
            json.loads(text)
            return "json"
        except (ValueError, RecursionError):
            pass
    if all(each.isprintable() or each in "\t\r\n" for each in text):
        return "text"
    return {4: "int32", 8: "int64"}.get(len(data), "hex")


def common_form(many: Iterable[bytes | None]) -> str:
    """The form that most have."""
    counted = Counter(form_of(each) for each in many if each is not None)
    return counted.most_common(1)[0][0] if counted else "text"


def _read(data: bytes, form: str) -> Read:
    match form:
        case "json":
            return Read("json", json.loads(data.decode()), True)
        case "text":
            return Read("text", data.decode(), False)
        case "int32" | "int64":
            if len(data) != (4 if form == "int32" else 8):
                raise ValueError(f"{len(data)} bytes are no {form}")
            return Read(form, str(int.from_bytes(data, "big", signed=True)), False)
        case "float64":
            if len(data) != 8:
                raise ValueError(f"{len(data)} bytes are no float64")
            return Read("float64", repr(unpack(">d", data)[0]), False)
        case "uuid":
            if len(data) == 36:
                return Read("uuid", str(uuid.UUID(data.decode())), False)
            return Read("uuid", str(uuid.UUID(bytes=data)), False)
        case "base64":
            return Read("base64", base64.b64encode(data).decode(), False)
    return Read("hex", data.hex(" "), False)


def header_text(value: bytes | None) -> str:
    """A header's value: text if it can be, else hex."""
    if value is None:
        return "null"
    return str(_read(value, "text" if form_of(value) in ("text", "json") else "hex").value)


def plain_header(name: str, value: bytes | None) -> dict[str, str | None]:
    """A header in a line of JSON: its value as text, or else as hex."""
    if value is None or form_of(value) in ("text", "json"):
        return {"name": name, "value": None if value is None else value.decode()}
    return {"name": name, "hex": value.hex()}


def parse_headers(given: Any) -> list[tuple[str, bytes | None]]:
    """Headers of a line of JSON: a list as `plain_header` makes it, or an object of names and texts. Raises `ValueError`."""
    if isinstance(given, dict):
        given = [{"name": name, "value": value} for name, value in given.items()]
    found: list[tuple[str, bytes | None]] = []
    for each in given if isinstance(given, list) else [given]:
        if not isinstance(each, dict) or not isinstance(each.get("name"), str):
            raise ValueError('headers are an object of names and texts, or a list of {"name": …, "value": …}')
        value = each.get("value")
        if "hex" in each:
            found.append((each["name"], bytes.fromhex(str(each["hex"]))))
        elif value is None or isinstance(value, str):
            found.append((each["name"], None if value is None else value.encode()))
        else:
            raise ValueError(f"the header {each['name'][:60]} is no text")
    return found


_WRITERS: Final[dict[str, Callable[[str], bytes]]] = {
    "text": str.encode,
    "hex": bytes.fromhex,
    "base64": partial(base64.b64decode, validate=True),
    "int32": lambda text: int(text).to_bytes(4, "big", signed=True),
    "int64": lambda text: int(text).to_bytes(8, "big", signed=True),
    "float64": lambda text: pack(">d", float(text)),
    "uuid": lambda text: uuid.UUID(text).bytes,
}


def parse(text: str, form: str) -> bytes:
    """The bytes that a typed text stands for. Raises `ValueError`."""
    if form == "json":
        json.loads(text)  # only checked: the bytes are what was typed
        return text.encode()
    if form not in _WRITERS:
        raise ValueError(f"nothing can be written as {form!r}: choose one of {', '.join(WRITABLE)}")
    try:
        return _WRITERS[form](text)
    except (ValueError, OverflowError) as problem:
        raise ValueError(f"{text[:60]!r} cannot be written as {form}: {problem}") from None


def parse_plain(value: Any, form: str) -> bytes | None:
    """The bytes of a key or value in a line of JSON, as downloads have them. Raises `ValueError`."""
    if value is None and form != "json":
        return None
    if form in ("", "auto"):
        form = "text" if isinstance(value, str) else "json"
    if form == "json" or not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    return parse(value, form)
