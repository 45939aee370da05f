"""What the serializers and deserializers of all languages share: subjects, registration, and both wire forms."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from ottla.errors import ConfigError, SerializationError
from ottla.schemas.client import RegisteredSchema, RegistryRefusedError, Schema, SchemaRegistry, as_registry
from ottla.schemas.framing import KEY_HEADER, VALUE_HEADER, Headers, NotFramed, header, prefix, unframe

SubjectStrategy = Callable[[str, str, bool], str]
"""Called with (topic, full name of the record, whether it is a key)."""
S = TypeVar("S", bound="KnowsItsPart")


def topic_subject(topic: str, name: str, is_key: bool) -> str:
    """`orders-value`: one kind of record in a topic."""
    return f"{topic}-{'key' if is_key else 'value'}"


def record_subject(topic: str, name: str, is_key: bool) -> str:
    """`shop.Order`: a kind of record, wherever it is."""
    return name


def topic_record_subject(topic: str, name: str, is_key: bool) -> str:
    """`orders-shop.Order`: several kinds of records in a topic."""
    return f"{topic}-{name}"


STRATEGIES: dict[str, SubjectStrategy] = {
    "topic": topic_subject,
    "record": record_subject,
    "topic_record": topic_record_subject,
}


class KnowsItsPart:
    """Works on values, or on keys when a client was given it as a key's."""

    is_key = False

    def for_key(self: S) -> S:
        """The same for keys. Clients call it where they are given it as `key_serializer` or `key_deserializer`."""
        if self.is_key:
            return self
        other = copy.copy(self)
        other.is_key = True
        other._forget()
        return other

    def _forget(self) -> None:
        """Drop what was prepared for values."""


class Prepared(NamedTuple):
    """How the records of a topic are written."""

    front: bytes
    """What goes in front of the payload."""
    header: tuple[str, bytes] | None
    """The header that names the schema, in the header form."""
    schema: Schema
    codec: Any
    """What the language needs to write with this schema."""


class SchemaSerializer(KnowsItsPart):
    """The part of a serializer that does not depend on the language."""

    kind = ""

    def __init__(
        self,
        registry: SchemaRegistry | str,
        schema: Any,
        *,
        subject: str | SubjectStrategy = "topic",
        auto_register: bool = True,
        use_latest: bool = False,
        use_id: int | None = None,
        normalize: bool = False,
        in_header: bool = False,
    ) -> None:
        self.registry = as_registry(registry)
        self._given = schema
        if isinstance(subject, str) and subject not in STRATEGIES:
            raise ConfigError(f"subject={subject!r}: use {', '.join(STRATEGIES)}, or a function of (topic, name, is_key)")
        self._subject = STRATEGIES[subject] if isinstance(subject, str) else subject
        self._auto_register = auto_register
        self._use_latest = use_latest
        self._use_id = use_id
        self._normalize = normalize
        self._in_header = in_header
        self._prepared: dict[Any, Prepared] = {}

    def _forget(self) -> None:
        self._prepared = {}

    def prepare(self, topic: str) -> None:
        """Register or look up the schema for a topic now, and not with the first record: in asyncio programs, before the loop
        is busy (`await asyncio.to_thread(serializer.prepare, "orders")`).
        """
        raise NotImplementedError

    def _prepare(
        self, topic: str, schema: Schema, name: str, make_codec: Callable[[Schema], Any], indexes: bytes = b""
    ) -> Prepared:
        """Find or store the schema of a topic."""
        subject = self._subject(topic, name, self.is_key)
        try:
            found = self._found(subject, schema)
        except RegistryRefusedError as refusal:
            raise SerializationError(self._why(refusal, subject)) from refusal
        codec = make_codec(found.schema if self._use_latest or self._use_id is not None else schema)
        if not self._in_header:
            return Prepared(prefix(found.id) + indexes, None, schema, codec)
        if not found.guid:
            raise SerializationError(f"{self.registry!r} gives schemas no GUID, which in_header=True needs: leave it out")
        return Prepared(b"", (KEY_HEADER if self.is_key else VALUE_HEADER, header(found.guid, indexes)), schema, codec)

    def _found(self, subject: str, schema: Schema) -> RegisteredSchema:
        if self._use_id is not None:
            return RegisteredSchema(subject, 0, self._use_id, "", self.registry.schema(self._use_id, subject))
        if self._use_latest:
            return self.registry.latest(subject)
        if self._auto_register:
            return self.registry.register(subject, schema, normalize=self._normalize)
        return self.registry.look_up(subject, schema, normalize=self._normalize)

    def _why(self, refusal: RegistryRefusedError, subject: str) -> str:
        text = str(refusal)
        if refusal.status == 404 and not self._auto_register:
            return f"{text}: it is not in subject {subject}. Register it (ottla schemas register), or use auto_register=True"
        if refusal.status == 404 and self._use_latest:
            return f"{text}: subject {subject} has no schema yet. Register one: ottla schemas register {subject} FILE"
        return f"subject {subject}: {text}"

    @staticmethod
    def _add_header(headers: Any, found: tuple[str, bytes]) -> None:
        if not hasattr(headers, "append"):
            raise SerializationError("in_header=True adds a header to the record: pass its headers as a list (headers=[])")
        headers[:] = [each for each in headers if each[0] != found[0]]
        headers.append(found)


class SchemaDeserializer(KnowsItsPart):
    """The part of a deserializer that does not depend on the language."""

    kind = ""

    def __init__(self, registry: SchemaRegistry | str, *, subject: str | SubjectStrategy = "topic") -> None:
        self.registry = as_registry(registry)
        self._subject = STRATEGIES[subject] if isinstance(subject, str) else subject
        self._codecs: dict[Any, Any] = {}

    def _forget(self) -> None:
        self._codecs = {}

    def _codec(self, topic: str, data: bytes, headers: Headers) -> tuple[Any, bytes, int]:
        """What reads a record, the message indexes of its header, and where its payload begins."""
        schema_id, guid, indexes, start = unframe(data, headers, is_key=self.is_key)
        key = schema_id if schema_id >= 0 else guid
        codec = self._codecs.get(key)
        if codec is None:
            schema = self.registry.schema(schema_id) if schema_id >= 0 else self.registry.schema_of_guid(guid)
            if schema.kind != self.kind:
                raise NotFramed(f"it was written with a schema of type {schema.kind}, and this deserializer reads {self.kind}")
            codec = self._codecs[key] = self._make_codec(schema)
        return codec, indexes, start

    def _make_codec(self, schema: Schema) -> Any:
        raise NotImplementedError
