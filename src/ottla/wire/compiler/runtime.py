"""Functions that compiled codecs call: long varints, arrays of numbers, unknown tagged fields. They raise `CodecDeclined`."""

import struct
from collections.abc import Callable
from typing import Any, Final

from ottla.wire.schema.model import STRING_BYTES_MAX
from ottla.wire.varint import encode_uvarint

_ARRAYS_READY: Final = 9
"""Arrays of up to 8 numbers, such as replica lists, use `struct` objects made in advance."""


UNKNOWN_TAGS_MAX: Final = 1000
"""A struct with more unknown tagged fields is left to the interpreter, which counts them before it reads them."""


class CodecDeclined(ValueError):
    """A compiled codec met something that it leaves to the interpreter."""


def long_length(buffer: bytes | bytearray, position: int, first: int) -> tuple[int, int]:
    """A varint of two to five bytes, after its `first` byte was read. Returns the value and the position after it."""
    value = first & 0x7F
    for shift in (7, 14, 21, 28):
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFF, position
    raise CodecDeclined


def long_text_length(buffer: bytes | bytearray, position: int, first: int) -> tuple[int, int]:
    """`long_length` for a string, which may not be longer than Kafka allows."""
    value, position = long_length(buffer, position, first)
    if value > STRING_BYTES_MAX + 1:
        raise CodecDeclined
    return value, position


def encode_text_length(length_plus_one: int) -> bytes:
    """The long varint before a string, which may not be longer than Kafka allows."""
    if length_plus_one > STRING_BYTES_MAX + 1:
        raise CodecDeclined
    return encode_uvarint(length_plus_one)


def read_uvarint(buffer: bytes | bytearray, position: int) -> tuple[int, int]:
    """A varint of any length. Returns the value and the position after it."""
    first = buffer[position]
    return (first, position + 1) if first < 0x80 else long_length(buffer, position + 1, first)


def read_unknown_tags(buffer: bytes | bytearray, position: int, count: int, end: int) -> tuple[list[tuple[int, bytes]], int]:
    """`count` tagged fields that are not in the schema, and where they end. Above 127, `count` is a varint's first byte."""
    if count > 0x7F:
        count, position = long_length(buffer, position, count)
        if count > UNKNOWN_TAGS_MAX:
            raise CodecDeclined
    tags = []
    for _ in range(count):
        tag, position = read_uvarint(buffer, position)
        size, position = read_uvarint(buffer, position)
        if size > end - position:
            raise CodecDeclined
        tags.append((tag, bytes(buffer[position : position + size])))
        position += size
    return tags, position


class ArrayStructs:
    """`struct` objects for arrays of one fixed-size type, indexed by the number of elements."""

    __slots__ = ("_letter", "packers", "unpackers")

    def __init__(self, letter: str) -> None:
        self._letter = letter
        ready = [struct.Struct(self._format(count)) for count in range(_ARRAYS_READY)]
        self.packers: list[Callable[..., bytes]] = [each.pack for each in ready]
        self.unpackers: list[Callable[..., tuple[Any, ...]]] = [each.unpack_from for each in ready]

    def _format(self, count: int) -> str:
        return ">" + self._letter * count if self._letter == "16s" else f">{count}{self._letter}"

    def packer(self, count: int) -> Callable[..., bytes]:
        return self.packers[count] if count < _ARRAYS_READY else struct.Struct(self._format(count)).pack

    def unpacker(self, count: int) -> Callable[..., tuple[Any, ...]]:
        return self.unpackers[count] if count < _ARRAYS_READY else struct.Struct(self._format(count)).unpack_from


_arrays: dict[str, ArrayStructs] = {}


def array_structs(letter: str) -> ArrayStructs:
    """The `ArrayStructs` of one `struct` letter, made on first use."""
    found = _arrays.get(letter)
    if found is None:
        found = _arrays[letter] = ArrayStructs(letter)
    return found
