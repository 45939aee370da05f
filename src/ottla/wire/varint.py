"""Unsigned varints: 7 bits per byte, lowest first, the top bit set on all but the last byte. At most 32 bits, as in Kafka."""

from typing import Final

from ottla.errors import DecodeError

ONE_BYTE: Final = tuple(bytes((value,)) for value in range(128))
"""The encodings of 0 to 127."""


def encode_uvarint(value: int) -> bytes:
    """`value` (0 or more) as an unsigned varint."""
    if value < 128:
        return ONE_BYTE[value]
    if value < 1 << 14:
        return bytes((value & 0x7F | 0x80, value >> 7))
    if value < 1 << 21:
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14))
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def decode_uvarint(buffer: bytes | bytearray | memoryview, position: int) -> tuple[int, int]:
    """The unsigned varint at `position`, and the position after it; `DecodeError` if it is cut off or longer than 5 bytes."""
    value = 0
    for index in range(5):
        if position + index >= len(buffer):
            raise DecodeError(f"at byte {position}: the buffer ends within a varint", position)
        byte = buffer[position + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value & 0xFFFFFFFF, position + index + 1
    raise DecodeError(f"at byte {position}: a varint is longer than 5 bytes", position)
