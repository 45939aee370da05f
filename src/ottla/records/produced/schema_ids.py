"""Which schemas the records of a batch say they were written with: Confluent's wire formats, without looking at the payload.

    prefix form   byte 0, id int32 big endian, payload; or byte 1, GUID 16 bytes, payload
    header form   header __key_schema_id or __value_schema_id = either of the two; payload bare

Readers look for the header first. A mark is those first bytes: 5 for an id, 17 for a GUID, none at all for bytes that name no
schema. Pure; `ottla.schemas.framing` reads and writes the same for clients.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection
from itertools import pairwise

from ottla.errors import CorruptRecords
from ottla.records.batch import BatchView
from ottla.records.columns import BinaryColumn, Columns, columns_from_batches

Mark = bytes

UNMARKED: Mark = b""
"""Of a record that names no schema."""
BY_ID, BY_GUID = 0, 1
MARKS_MAX = 10_000
"""So many different schemas in one batch are a mistake or an attack, and each costs memory and a request to the registry."""
ROWS_PER_PIECE = 50_000
_SIZES = {BY_ID: 5, BY_GUID: 17}
_HEADERS = {True: b"__key_schema_id", False: b"__value_schema_id"}


def read_marks(view: BatchView, sides: Collection[bool], decompressed_bytes_max: int) -> dict[bool, list[Mark | None]]:
    """The mark of each record's key (True) and value (False); None where it is null. `CorruptRecords` if it cannot be read."""
    wanted = ["headers", *(["key"] if True in sides else []), *(["value"] if False in sides else [])]
    columns = columns_from_batches([view], decompressed_bytes_max=decompressed_bytes_max, wanted=wanted)
    found = {}
    for is_key in sides:
        marks = _prefixes(columns.keys if is_key else columns.values)
        if columns.header_keys.data and _HEADERS[is_key] in bytes(columns.header_keys.data):
            _prefer_headers(marks, columns, _HEADERS[is_key])
        found[is_key] = marks
    return found


def describe_mark(mark: Mark) -> str:
    """`schema id 7`, for people."""
    if mark[:1] == b"\x00":
        return f"schema id {int.from_bytes(mark[1:], 'big', signed=True)}"
    return f"schema GUID {guid_of(mark)}"


def id_of(mark: Mark) -> int:
    """The id that a mark names; -1 if it names a GUID."""
    return int.from_bytes(mark[1:], "big", signed=True) if mark[0] == BY_ID else -1


def guid_of(mark: Mark) -> str:
    return str(uuid.UUID(bytes=mark[1:]))


def _mark(data: bytes) -> Mark:
    size = _SIZES.get(data[0], 0) if data else 0
    return data[:size] if len(data) >= size else UNMARKED


def _prefixes(column: BinaryColumn) -> list[Mark | None]:
    """The marks in front of the bytes. Equal ones are one object: a batch can have millions of records."""
    positions, data, bitmap = memoryview(column.positions).cast("B").cast("i"), bytes(column.data), column.bitmap
    rows = len(positions) - 1
    known: dict[Mark, Mark] = {}
    found: list[Mark | None] = []
    for first in range(0, rows, ROWS_PER_PIECE):
        pairs = pairwise(positions[first : first + ROWS_PER_PIECE + 1])
        if bitmap is None:
            # Nearly all records are of this kind: no call for each.
            found += [
                known.setdefault(mark, mark)
                for start, end in pairs
                for mark in (
                    data[start : start + 5]
                    if end - start >= 5 and not data[start]
                    else _mark(data[start : min(end, start + 17)]),
                )
            ]
        else:
            for row, (start, end) in enumerate(pairs, first):
                if bitmap[row >> 3] >> (row & 7) & 1:
                    mark = _mark(data[start : min(end, start + 17)])
                    found.append(known.setdefault(mark, mark))
                else:
                    found.append(None)
        if len(known) > MARKS_MAX:
            raise CorruptRecords(f"its records name more than {MARKS_MAX} schemas: send smaller batches")
    return found


def _prefer_headers(marks: list[Mark | None], columns: Columns, name: bytes) -> None:
    """Put the mark of a record's header in place of that of its bytes. A null stays one."""
    lists = memoryview(columns.header_lists).cast("B").cast("i")
    names, values = columns.header_keys, columns.header_values
    name_ends, value_ends = memoryview(names.positions).cast("B").cast("i"), memoryview(values.positions).cast("B").cast("i")
    for row, mark in enumerate(marks):
        if mark is None:
            continue
        for at in range(lists[row], lists[row + 1]):
            if names.data[name_ends[at] : name_ends[at + 1]] == name and value_ends[at + 1] > value_ends[at]:
                marks[row] = _mark(bytes(values.data[value_ends[at] : min(value_ends[at + 1], value_ends[at] + 17)]))
                break
