"""Decodes and encodes messages by walking the schema, field by field. Simple, not fast.

It has two uses. Tests compare the compiled codecs with it, byte for byte. And compiled codecs fall back to it for what they do
not handle: it names the field at fault, decodes invalid UTF-8 as Kafka does (bad bytes become U+FFFD), and writes unknown
tagged fields.

Format: big-endian numbers; in flexible versions lengths and counts are unsigned varints of n + 1 with 0 for null, and every
struct ends with its tagged fields; before that, lengths are int16 (strings) or int32 with -1 for null. A nullable struct has
one byte in front, -1 for null and 1 otherwise; where it is a tagged field, that byte is a varint and null is 0.
"""

import struct

from ottla.errors import DecodeError
from ottla.wire.base import EncodeError, Message, Part, Struct, UnsupportedVersion
from ottla.wire.binding import Binding
from ottla.wire.schema.model import (
    FIXED_FORMATS,
    FIXED_SIZES,
    INTEGER_RANGES,
    STRING_BYTES_MAX,
    FieldSchema,
    StructSchema,
)
from ottla.wire.varint import encode_uvarint

REQUEST_ELEMENTS_MAX = 1 << 16
"""How many elements all arrays of one request may have in total. Unknown tagged fields count too."""


def too_many_elements(name: str) -> DecodeError:
    return DecodeError(f"{name} has more than {REQUEST_ELEMENTS_MAX} elements, which is more than one request may ask for")


class _Reader:
    """A position in a buffer, for one message in one version."""

    def __init__(self, binding: Binding, version: int, buffer: memoryview, position: int) -> None:
        self.binding = binding
        self.version = version
        self.is_flexible = binding.schema.is_flexible(version)
        self.buffer = buffer
        self.position = position
        self.elements_left = REQUEST_ELEMENTS_MAX

    def count_elements(self, count: int) -> None:
        self.elements_left -= count
        if self.elements_left < 0 and self.binding.schema.kind == "request":
            raise too_many_elements(self.binding.schema.name)

    def fail(self, path: str, what: str) -> DecodeError:
        return DecodeError(f"{path} (version {self.version}) at byte {self.position}: {what}", self.position)

    def take(self, size: int, path: str) -> memoryview:
        left = len(self.buffer) - self.position
        if size > left:
            raise self.fail(path, f"{size} bytes are needed and {max(left, 0)} are left")
        self.position += size
        return self.buffer[self.position - size : self.position]

    def uvarint(self, path: str) -> int:
        value = 0
        for shift in range(0, 35, 7):
            byte = self.take(1, path)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & 0xFFFFFFFF
        raise self.fail(path, "a varint is longer than 5 bytes")

    def fixed(self, letter: str, path: str) -> object:
        return struct.unpack(">" + letter, self.take(FIXED_SIZES[letter], path))[0]

    def length(self, letter: str, flexible: bool, path: str) -> int:
        """A length or count; negative for null."""
        return self.uvarint(path) - 1 if flexible else int(self.fixed(letter, path))  # type: ignore[call-overload]  # an int


def decode(binding: Binding, version: int, buffer: bytes | bytearray | memoryview, position: int = 0) -> tuple[Message, int]:
    """The message at `position` and the position after it; `DecodeError` where the bytes do not follow the schema."""
    binding.check_version(version)
    reader = _Reader(binding, version, memoryview(buffer), position)
    message = _read_struct(reader, binding.schema.root, binding.schema.name)
    assert isinstance(message, Message)
    return message, reader.position


def _read_struct(reader: _Reader, schema: StructSchema, path: str) -> Struct:
    cls = reader.binding.classes[schema.name]
    value = cls()
    for field in schema.fields_in(reader.version):
        setattr(value, field.attribute, _read_field(reader, field, f"{path}.{field.attribute}"))
    if reader.is_flexible:
        _read_tagged(reader, schema, value, path)
    return value


def _read_tagged(reader: _Reader, schema: StructSchema, value: Struct, path: str) -> None:
    known = {field.tag: field for field in schema.tagged_in(reader.version)}
    unknown: list[tuple[int, bytes]] = []
    count = reader.uvarint(path)
    reader.count_elements(count)
    for _ in range(count):
        tag = reader.uvarint(path)
        size = reader.uvarint(path)
        start = reader.position
        if tag not in known:
            unknown.append((tag, bytes(reader.take(size, f"{path} tagged field {tag}"))))
            continue
        field = known[tag]
        setattr(value, field.attribute, _read_field(reader, field, f"{path}.{field.attribute}"))
        if reader.position != start + size:
            raise reader.fail(f"{path}.{field.attribute}", f"the tagged field took {reader.position - start} bytes, not {size}")
    value.unknown_tags = unknown or None


def _read_field(reader: _Reader, field: FieldSchema, path: str) -> object:
    if not field.is_array:
        return _read_value(reader, field, path)
    count = reader.length("i", reader.is_flexible and field.flexible, path)
    if count < 0:
        _check_null(reader, field, path)
        return None
    left = len(reader.buffer) - reader.position
    if count * max(smallest_size(reader.binding, field, reader.version), 1) > left:
        raise reader.fail(path, f"{count} elements are announced, more than the {max(left, 0)} bytes that are left can hold")
    reader.count_elements(count)
    return [_read_value(reader, field, f"{path}[{index}]", in_array=True) for index in range(count)]


def _read_value(reader: _Reader, field: FieldSchema, path: str, in_array: bool = False) -> object:
    flexible = reader.is_flexible and field.flexible
    if field.type in FIXED_FORMATS:
        return reader.fixed(FIXED_FORMATS[field.type], path)
    if field.struct is not None:
        if not in_array and reader.version in field.nullable and _is_null_marker(reader, field, path):
            return None
        return _read_struct(reader, field.struct, path)
    size = reader.length("h" if field.type == "string" else "i", flexible, path)
    if size < 0:
        _check_null(reader, field, path, in_array)
        return None
    if field.type == "string":
        if size > STRING_BYTES_MAX:
            raise reader.fail(path, f"a text of {size} bytes is longer than the {STRING_BYTES_MAX} allowed")
        return str(reader.take(size, path), "utf-8", "replace")
    view = reader.take(size, path)
    return view if field.is_hole else bytes(view)


def _is_null_marker(reader: _Reader, field: FieldSchema, path: str) -> bool:
    if reader.version in field.tagged:
        return reader.uvarint(path) == 0
    return int(reader.fixed("b", path)) < 0  # type: ignore[call-overload,no-any-return]  # an int


def _check_null(reader: _Reader, field: FieldSchema, path: str, in_array: bool = False) -> None:
    if in_array or reader.version not in field.nullable:
        raise reader.fail(path, "null, which this field may not be")


def smallest_size(binding: Binding, field: FieldSchema, version: int) -> int:
    """The fewest bytes that one value of `field` (one element of an array) can take."""
    flexible = binding.schema.is_flexible(version)
    if field.type in FIXED_FORMATS:
        return FIXED_SIZES[FIXED_FORMATS[field.type]]
    if field.struct is None:
        if flexible and field.flexible:
            return 1
        return 2 if field.type == "string" else 4
    size = 1 if flexible else 0
    for inner in field.struct.fields_in(version):
        if inner.is_array:
            size += 1 if flexible and inner.flexible else 4
        elif inner.struct is not None and version in inner.nullable:
            size += 1
        else:
            size += smallest_size(binding, inner, version)
    return size


class _Writer:
    """Collects the parts of one message in one version. Records are parts of their own."""

    def __init__(self, binding: Binding, version: int) -> None:
        self.binding = binding
        self.version = version
        self.is_flexible = binding.schema.is_flexible(version)
        self.done: list[Part] = []
        self.pieces: list[bytes | bytearray | memoryview] = []

    def length(self, length: int, letter: str, flexible: bool, path: str) -> None:
        if flexible:
            self.pieces.append(encode_uvarint(length + 1))
        else:
            low, high = INTEGER_RANGES["int16" if letter == "h" else "int32"]
            if not low <= length <= high:
                raise EncodeError(path, f"its length {length} is more than the {high} that fit")
            self.pieces.append(struct.pack(">" + letter, length))

    def close_piece(self) -> None:
        if joined := b"".join(self.pieces):
            self.done.append(joined)
        self.pieces = []


def encode(binding: Binding, version: int, message: Message, head: bytes = b"") -> list[Part]:
    """The parts of `message` in `version`, `head` in front; `EncodeError` names the field that cannot be written."""
    binding.check_version(version)
    writer = _Writer(binding, version)
    writer.pieces.append(head)
    _write_struct(writer, binding.schema.root, message, binding.schema.name)
    writer.close_piece()
    return writer.done


def _write_struct(writer: _Writer, schema: StructSchema, value: object, path: str) -> None:
    cls = writer.binding.classes[schema.name]
    if not isinstance(value, cls):
        raise EncodeError(path, f"{_shown(value)} is not a {cls.__name__}")
    for field in schema.absent_in(writer.version):
        if not field.ignorable and not is_default(writer.binding, field, getattr(value, field.attribute)):
            raise UnsupportedVersion(
                f"{path}.{field.attribute}",
                f"it is set to {_shown(getattr(value, field.attribute))}, but version {writer.version} has no such field",
            )
    for field in schema.fields_in(writer.version):
        _write_field(writer, field, getattr(value, field.attribute), f"{path}.{field.attribute}")
    if writer.is_flexible:
        _write_tagged(writer, schema, value, path)
    elif value.unknown_tags:
        raise UnsupportedVersion(path, f"it has tagged fields, which version {writer.version} cannot carry")


def _write_tagged(writer: _Writer, schema: StructSchema, value: Struct, path: str) -> None:
    fields = schema.tagged_in(writer.version)
    tagged: dict[int, bytes] = {}
    for tag, raw in value.unknown_tags or ():
        if tag in tagged or any(field.tag == tag for field in fields):
            raise EncodeError(path, f"the unknown tagged field {tag} is there twice or is a known field")
        tagged[tag] = raw
    outer = writer.pieces
    for field in fields:
        content = getattr(value, field.attribute)
        if not is_default(writer.binding, field, content):
            writer.pieces = []
            _write_field(writer, field, content, f"{path}.{field.attribute}")
            tagged[field.tag] = b"".join(writer.pieces)
    writer.pieces = outer
    writer.pieces.append(encode_uvarint(len(tagged)))
    for tag, raw in sorted(tagged.items()):
        writer.pieces += (encode_uvarint(tag), encode_uvarint(len(raw)), raw)


def _write_field(writer: _Writer, field: FieldSchema, value: object, path: str) -> None:
    if not field.is_array:
        _write_value(writer, field, value, path)
        return
    flexible = writer.is_flexible and field.flexible
    if value is None:
        _write_null(writer, field, "i", path)
        return
    if not isinstance(value, list | tuple):
        raise EncodeError(path, f"{_shown(value)} is not a list")
    writer.length(len(value), "i", flexible, path)
    for index, element in enumerate(value):
        _write_value(writer, field, element, f"{path}[{index}]", in_array=True)


def _write_value(writer: _Writer, field: FieldSchema, value: object, path: str, in_array: bool = False) -> None:
    if field.struct is not None:
        if not in_array and writer.version in field.nullable:
            if value is None:
                writer.pieces.append(b"\0" if writer.version in field.tagged else b"\xff")
                return
            writer.pieces.append(b"\1")
        if value is None and field.absent_as_none:
            value = writer.binding.classes[field.struct.name]()
        _write_struct(writer, field.struct, value, path)
    elif field.type in FIXED_FORMATS:
        writer.pieces.append(_fixed_bytes(field, value, path))
    elif value is None:
        if in_array:
            raise EncodeError(path, "null, which an element may not be")
        _write_null(writer, field, "h" if field.type == "string" else "i", path)
    else:
        _write_sized(writer, field, value, path)


def _write_sized(writer: _Writer, field: FieldSchema, value: object, path: str) -> None:
    """A string, bytes or records: a length, then the bytes."""
    flexible = writer.is_flexible and field.flexible
    if field.type == "string":
        if not isinstance(value, str):
            raise EncodeError(path, f"{_shown(value)} is not a text")
        try:
            raw = value.encode()
        except UnicodeEncodeError as error:
            raise EncodeError(path, f"{value!a} cannot be written as UTF-8: {error.reason}") from None
        if len(raw) > STRING_BYTES_MAX:
            raise EncodeError(path, f"a text of {len(raw)} bytes is longer than the {STRING_BYTES_MAX} allowed")
        writer.length(len(raw), "h", flexible, path)
        writer.pieces.append(raw)
    elif isinstance(value, bytes | bytearray | memoryview):
        writer.length(len(value), "i", flexible, path)
        if field.type == "records" and len(value):
            writer.close_piece()
            writer.done.append(value)
        else:
            writer.pieces.append(value)
    elif field.type == "records" and hasattr(value, "__len__") and not isinstance(value, str | list | tuple):
        writer.length(len(value), "i", flexible, path)
        if len(value):
            writer.close_piece()
            writer.done.append(value)  # type: ignore[arg-type]  # any other object with a length is a file range
    else:
        raise EncodeError(path, f"{_shown(value)} is not bytes")


def _write_null(writer: _Writer, field: FieldSchema, letter: str, path: str) -> None:
    if writer.version not in field.nullable:
        raise EncodeError(path, f"null, which this field may not be in version {writer.version}")
    writer.length(-1, letter, writer.is_flexible and field.flexible, path)


def _fixed_bytes(field: FieldSchema, value: object, path: str) -> bytes:
    if field.type == "uuid":
        if not isinstance(value, bytes) or len(value) != 16:
            raise EncodeError(path, f"{_shown(value)} is not a UUID of 16 bytes")
    elif field.type in INTEGER_RANGES:
        low, high = INTEGER_RANGES[field.type]
        if not isinstance(value, int) or not low <= value <= high:
            raise EncodeError(path, f"{_shown(value)} is not a number from {low} to {high}, as {field.type} holds")
    elif field.type == "float64" and not (isinstance(value, float) or (isinstance(value, int) and abs(value) < 1 << 1023)):
        raise EncodeError(path, f"{_shown(value)} is not a number that float64 holds")
    return struct.pack(">" + FIXED_FORMATS[field.type], value)


def is_default(binding: Binding, field: FieldSchema, value: object) -> bool:
    """Whether `value` is the default of `field`."""
    if field.struct is None or field.is_array or value is None:
        default = field.default()
        return value == default and (value is None) == (default is None)
    if field.default() is None and not field.absent_as_none:
        return False
    return not getattr(value, "unknown_tags", None) and all(
        is_default(binding, inner, getattr(value, inner.attribute)) for inner in field.struct.fields
    )


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
