"""Numbers and bytes at a place in a buffer, as the kernels of every floor read and write them.

This file serves the pure variants. The compiled ones take the functions of the same names from `kernel_fields.pxd`, where they
are written a second time: only then does a C compiler inline them into each kernel, instead of calling another module. They are
the only functions that exist twice: here with `struct` and slices, there with pointers. A test compares the two.

A kernel says `from ottla.records import kernel_fields as fields`, and its `.pxd` the same with `cimport`: that is one name for
a module in both variants. A function cannot have one.

Varints hold seven bits a byte, the lowest first. Zigzag makes small numbers of those with a sign: 0, -1, 1, -2 are 0, 1, 2, 3.
Callers compare positions with the buffer's end first, except for functions that take the `end`.
"""

from __future__ import annotations

from struct import Struct, unpack_from

from ottla.records.layout import HEADER

Buffer = bytes | bytearray | memoryview
Target = bytearray | memoryview

_INT32_MAX = 0x7FFFFFFF
_INT64_MAX = 0x7FFFFFFFFFFFFFFF
_INT64_MIN = -_INT64_MAX - 1
_MASK32 = 0xFFFFFFFF
_MASK64 = 0xFFFFFFFFFFFFFFFF
_MURMUR_SEED = 0x9747B28C
_MURMUR_M = 0x5BD1E995
_MASKS = {size: (1 << 8 * size) - 1 for size in (1, 2, 4, 8)}
_READERS = {size: Struct(f">{kind}").unpack_from for size, kind in ((1, "b"), (2, "h"), (4, "i"), (8, "q"))}
_WRITERS = {size: Struct(f">{kind}").pack_into for size, kind in ((1, "B"), (2, "H"), (4, "I"), (8, "Q"))}


def wrap64(value: int) -> int:
    """`value`, the sum of two 64-bit numbers, as 64 bits with a sign hold it. In the compiled variant it is so already."""
    if value > _INT64_MAX:
        return value - _MASK64 - 1
    return value + _MASK64 + 1 if value < _INT64_MIN else value


def number(raw: Buffer, at: int, size: int) -> int:
    """The number with a sign that the `size` bytes (1, 2, 4 or 8) at `at` are."""
    value: int = _READERS[size](raw, at)[0]
    return value


def put_number(out: Target, at: int, value: int, size: int) -> None:
    """Write the lowest `size` bytes (1, 2, 4 or 8) of `value` at `at`."""
    _WRITERS[size](out, at, value & _MASKS[size])


def copy(out: Target, at: int, raw: Buffer, start: int, size: int) -> int:
    """Write the `size` bytes of `raw` from `start` on at `at`; returns where they end."""
    end = at + size
    out[at:end] = raw[start : start + size]
    return end


def uvarint(raw: Buffer, position: int, end: int) -> tuple[int, int]:
    """The number without a sign at `position`, and where it ends: (-1, beyond `end`) if there is none below 2^31."""
    if position < end and raw[position] < 0x80:
        return raw[position], position + 1
    value = 0
    shift = 0
    while position < end and shift < 32:
        wide = raw[position]
        position += 1
        value |= (wide & 0x7F) << shift
        if wide < 0x80:
            if value > _INT32_MAX:
                break
            return value, position
        shift += 7
    return -1, end + 1


def varint(raw: Buffer, position: int, end: int, bits_max: int) -> tuple[int, int]:
    """The zigzag number at `position`, and where it ends: beyond `end` if it goes on for more than `bits_max`, 32 or 64, bits.

    Of those that end with the last byte that is allowed, bits too many are dropped, as Java does.
    """
    if position < end and raw[position] < 0x80:
        bits = raw[position]
        return (bits >> 1) ^ -(bits & 1), position + 1
    bits = 0
    shift = 0
    while position < end and shift < bits_max:
        wide = raw[position]
        position += 1
        bits |= (wide & 0x7F) << shift
        if wide < 0x80:
            bits &= _MASK32 if bits_max == 32 else _MASK64
            return (bits >> 1) ^ -(bits & 1), position
        shift += 7
    return 0, end + 1


def uvarint_size(value: int) -> int:
    """How many bytes `value` takes as a number without a sign."""
    return 1 if value < 0x80 else (value.bit_length() + 6) // 7


def varint_size(value: int) -> int:
    """How many bytes `value`, which has 64 bits at most, takes as a zigzag number."""
    return 1 if -0x40 <= value < 0x40 else (((value << 1) ^ (value >> 63)).bit_length() + 6) // 7


def put_uvarint(out: Target, at: int, value: int) -> int:
    """Write `value`, which is not negative, at `at`; returns where it ends."""
    while value > 0x7F:
        out[at] = (value & 0x7F) | 0x80
        value >>= 7
        at += 1
    out[at] = value
    return at + 1


def put_varint(out: Target, at: int, value: int) -> int:
    """Write `value`, which has 64 bits at most, as a zigzag number at `at`; returns where it ends."""
    bits = (value << 1) ^ (value >> 63)
    if bits > 0x7F:
        return put_uvarint(out, at, bits)
    out[at] = bits
    return at + 1


def untrack(made: object) -> None:
    """Tell the garbage collector that `made`, which refers only to immutable objects, can be in no cycle. Does nothing here."""


def batch_header(raw: Buffer, at: int) -> tuple[int, int, int, int, int, int, int, int, int, int, int, int, int]:
    """The numbers of the batch's header at `at`, in their order; `layout.py` has the format."""
    return HEADER.unpack_from(raw, at)


def are_headers(raw: Buffer, position: int, limit: int) -> bool:
    """Whether a header count and that many headers of a record fill `raw` from `position` to `limit` exactly."""
    count, position = varint(raw, position, limit, 32)
    if position > limit or count < 0 or count > (limit - position) // 2:
        return False
    for _ in range(count):
        size, position = varint(raw, position, limit, 32)
        if position > limit or size < 0 or size > limit - position:
            return False
        size, position = varint(raw, position + size, limit, 32)
        if position > limit or size > limit - position:
            return False
        if size > 0:
            position += size
    return position == limit


def murmur2(raw: Buffer, start: int, size: int) -> int:
    """The 32-bit hash without a sign of the `size` bytes of `raw` from `start` on, by which Kafka's clients spread keys."""
    words = size >> 2
    hashed = _MURMUR_SEED ^ size
    for word in unpack_from(f"<{words}I", raw, start):
        word = word * _MURMUR_M & _MASK32
        word = (word ^ word >> 24) * _MURMUR_M & _MASK32
        hashed = hashed * _MURMUR_M & _MASK32 ^ word
    rest = raw[start + (words << 2) : start + size]
    if rest:
        hashed = (hashed ^ int.from_bytes(rest, "little")) * _MURMUR_M & _MASK32
    hashed = (hashed ^ hashed >> 13) * _MURMUR_M & _MASK32
    return hashed ^ hashed >> 15
