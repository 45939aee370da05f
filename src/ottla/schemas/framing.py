"""How a record says which schema it was written with: in front of its bytes, or in a header. Pure.

    prefix form   byte 0, id int32 big endian, [Protobuf: message indexes], payload
    header form   header __key_schema_id or __value_schema_id = byte 1, GUID 16 bytes, [Protobuf: message indexes]; payload bare

Message indexes lead from the file to a message: zigzag varint count, then zigzag varints from the top message down; the single
index 0 is one byte 0. Readers look for the header first.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

Headers = Sequence[tuple[str, bytes | None]]

KEY_HEADER = "__key_schema_id"
VALUE_HEADER = "__value_schema_id"
BY_ID, BY_GUID = 0, 1
PREFIX = Struct(">bi")
GUID_SIZE = 16


class NotFramed(ValueError):
    """Bytes that do not begin with a schema's id."""


class Framed(NamedTuple):
    """Which schema a record was written with, by id or by GUID, and where what follows begins."""

    id: int
    guid: str
    indexes: bytes
    """What follows the GUID in a header; empty in the prefix form, where `start` is before the indexes."""
    start: int


def prefix(schema_id: int) -> bytes:
    return PREFIX.pack(BY_ID, schema_id)


def header(guid: str, indexes: bytes = b"") -> bytes:
    return bytes([BY_GUID]) + uuid.UUID(guid).bytes + indexes


def unframe(data: bytes, headers: Headers, *, is_key: bool) -> Framed:
    """Find the schema of a record."""
    if headers:
        wanted = KEY_HEADER if is_key else VALUE_HEADER
        for name, value in headers:
            if name == wanted and value:
                return _from(value, is_header=True)
    return _from(data, is_header=False)


def _from(data: bytes, *, is_header: bool) -> Framed:
    if len(data) >= PREFIX.size and data[0] == BY_ID:
        schema_id = PREFIX.unpack_from(data)[1]
        return Framed(schema_id, "", data[PREFIX.size :] if is_header else b"", 0 if is_header else PREFIX.size)
    if len(data) > GUID_SIZE and data[0] == BY_GUID:
        guid = str(uuid.UUID(bytes=bytes(data[1 : 1 + GUID_SIZE])))
        return Framed(-1, guid, data[1 + GUID_SIZE :] if is_header else b"", 0 if is_header else 1 + GUID_SIZE)
    shown = bytes(data[:8]).hex(" ")
    raise NotFramed(
        f"it does not begin with the id of a schema ({len(data)} bytes: {shown}{' …' if len(data) > 8 else ''}): "
        "it was written without a schema registry"
    )


def write_indexes(indexes: Sequence[int]) -> bytes:
    """Message indexes of Protobuf."""
    if list(indexes) == [0]:
        return b"\x00"
    return b"".join(_zigzag(each) for each in (len(indexes), *indexes))


def read_indexes(data: bytes, start: int = 0) -> tuple[list[int], int]:
    """The message indexes at a place, and where they end."""
    count, at = _unzigzag(data, start)
    if count == 0:
        return [0], at
    if not 0 < count <= 100:
        raise NotFramed(f"{count} message indexes: it was not written by a Protobuf serializer")
    indexes = []
    for _ in range(count):
        each, at = _unzigzag(data, at)
        indexes.append(each)
    return indexes, at


def _zigzag(number: int) -> bytes:
    rest, found = (number << 1) ^ (number >> 63), bytearray()
    while rest > 0x7F:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    found.append(rest)
    return bytes(found)


def _unzigzag(data: bytes, at: int) -> tuple[int, int]:
    found = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise NotFramed("the message indexes are cut short: it was not written by a Protobuf serializer")
        byte = data[at]
        found |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return (found >> 1) ^ -(found & 1), at
