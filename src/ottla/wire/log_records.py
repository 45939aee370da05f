"""Encodes and decodes keys and values of records in Kafka's internal logs.

    metadata value      uvarint frame version (1) | uvarint record type | uvarint record version | body
    coordinator key     int16 record type | body in version 0
    coordinator value   int16 record version | body; null is a tombstone

Record types are numbered per log: 0 is an offset in __consumer_offsets, a transaction in __transaction_state, a snapshot in
__share_group_state. So every call names its log. As in Kafka, bytes after a metadata record are refused, and bytes after a
coordinator record are ignored.
"""

from enum import Enum
from importlib import import_module
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.errors import DecodeError
from ottla.wire.base import EncodeError, Message
from ottla.wire.binding import binding_of
from ottla.wire.codec import decoder, join_parts
from ottla.wire.sparing import decode_all, encode, encoder_if_many
from ottla.wire.varint import decode_uvarint, encode_uvarint

if TYPE_CHECKING:
    from ottla.wire.compiler.encoding import Encoder

FRAME_VERSION: Final = 1

_INT16: Final = Struct(">h")
_KEY_VERSION: Final = 0  # the schemas of all keys have this version only


class InternalLog(Enum):
    """A log whose records have schemas, with the modules that hold their classes."""

    CLUSTER_METADATA = ("metadata_records",)
    REMOTE_LOG_METADATA = ("remote_log_records",)
    GROUPS = (
        "offset_records",
        "classic_group_records",
        "consumer_group_records",
        "share_group_records",
        "streams_group_records",
    )
    TRANSACTIONS = ("transaction_records",)
    SHARE_STATE = ("share_state_records",)


class UnknownRecordType(DecodeError):
    """A record of a type this version of Kafka does not have; a newer release may have written it."""

    def __init__(self, log: InternalLog, record_type: int) -> None:
        super().__init__(f"the log {log.name} knows no record type {record_type}: a newer release may have written it", 0)
        self.record_type = record_type


class UnknownRecordVersion(DecodeError):
    """A record of a version this version of Kafka does not have; a newer release may have written it."""


class LogRecord(NamedTuple):
    """A message from an internal log, and the version it was written in."""

    message: Any
    version: int


_metadata_classes: dict[InternalLog, dict[int, type[Message]]] = {}
_coordinator_encoders: dict[tuple[type[Message], int], "Encoder"] = {}
_coordinator_classes: dict[InternalLog, dict[int, tuple[type[Message], type[Message]]]] = {}


def metadata_class(record_type: int, log: InternalLog = InternalLog.CLUSTER_METADATA) -> type[Message]:
    """The class of a metadata record's type."""
    classes = _metadata_classes.get(log)
    if classes is None:
        classes = _metadata_classes[log] = {cls.KEY: cls for cls in _classes_of(log)}
    if record_type not in classes:
        raise UnknownRecordType(log, record_type)
    return classes[record_type]


def coordinator_classes(log: InternalLog, record_type: int) -> tuple[type[Message], type[Message]]:
    """The classes of key and value of a coordinator record's type."""
    classes = _coordinator_classes.get(log)
    if classes is None:
        found = list(_classes_of(log))
        values = {cls.KEY: cls for cls in found if cls.__name__.endswith("Value")}
        classes = {cls.KEY: (cls, values[cls.KEY]) for cls in found if cls.__name__.endswith("Key")}
        _coordinator_classes[log] = classes
    if record_type not in classes:
        raise UnknownRecordType(log, record_type)
    return classes[record_type]


def _classes_of(log: InternalLog) -> list[type[Message]]:
    modules = [import_module(f"ottla.wire.messages.{name}") for name in log.value]
    return [
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Message) and value is not Message
    ]


def encode_metadata_record(message: Message, version: int) -> bytes:
    """The value of a record of __cluster_metadata (or of the remote log metadata topic)."""
    if message.KEY < 0:
        raise EncodeError(message.__class__.__name__, "it is not a record of a metadata log")
    head = encode_uvarint(FRAME_VERSION) + encode_uvarint(message.KEY) + encode_uvarint(version)
    return join_parts(encode(message, version, head))


def decode_metadata_record(value: bytes | bytearray | memoryview, log: InternalLog = InternalLog.CLUSTER_METADATA) -> LogRecord:
    """The message in the value of a metadata record."""
    frame_version, position = decode_uvarint(value, 0)
    if frame_version != FRAME_VERSION:
        raise DecodeError(f"a metadata record has the frame version {frame_version}, and only {FRAME_VERSION} is known", 0)
    record_type, position = decode_uvarint(value, position)
    version, position = decode_uvarint(value, position)
    cls = metadata_class(record_type, log)
    _check_version(cls, version)
    return LogRecord(decode_all(cls, version, value, position), version)


def encode_coordinator_key(key: Message) -> bytes:
    """The key of a coordinator's record."""
    return _encoded(key, _KEY_VERSION, _INT16.pack(key.KEY))


def encode_coordinator_value(value: Message, version: int) -> bytes:
    """The value of a coordinator's record; a tombstone is None instead, and needs no encoding."""
    return _encoded(value, version, _INT16.pack(version))


def _encoded(message: Message, version: int, head: bytes) -> bytes:
    """`head` and the encoded message. Caches the compiled encoder here: offset commits encode thousands of records."""
    encode_now = _coordinator_encoders.get((message.__class__, version))
    if encode_now is None:
        encode_now = encoder_if_many(message.__class__, version)
        if encode_now is None:
            return join_parts(encode(message, version, head))
        _coordinator_encoders[message.__class__, version] = encode_now
    parts = encode_now(message, head)
    first = parts[0]
    return first if len(parts) == 1 and isinstance(first, bytes) else join_parts(parts)


def decode_coordinator_key(log: InternalLog, key: bytes | bytearray | memoryview) -> Any:
    """The message in the key of a coordinator's record; its class tells the type."""
    key_class, _ = coordinator_classes(log, _leading_int16(key, "the key of a coordinator record"))
    return decoder(key_class, _KEY_VERSION)(key, 2)[0]


def decode_coordinator_value(log: InternalLog, key: Message, value: bytes | bytearray | memoryview) -> LogRecord:
    """The message in the value of a coordinator's record, whose decoded key says what it is."""
    _, value_class = coordinator_classes(log, key.KEY)
    version = _leading_int16(value, "the value of a record with the key ", key)
    _check_version(value_class, version)
    return LogRecord(decoder(value_class, version)(value, 2)[0], version)


def _leading_int16(data: bytes | bytearray | memoryview, what: str, key: Message | str = "") -> int:
    if len(data) < 2:
        raise DecodeError(f"{what}{key} has {len(data)} bytes, too few to tell its type or version", 0)
    return int(_INT16.unpack_from(data, 0)[0])


def _check_version(cls: type[Message], version: int) -> None:
    versions = binding_of(cls).schema.versions
    if version not in versions:
        raise UnknownRecordVersion(
            f"a {cls.__name__} of version {version} cannot be read, only {versions.low} to {versions.high}: "
            "a newer release may have written it",
            0,
        )
