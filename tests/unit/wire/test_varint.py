"""Unsigned varints, at the edges of their sizes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.errors import DecodeError
from ottla.wire.compiler.runtime import CodecDeclined, long_length, read_uvarint
from ottla.wire.varint import decode_uvarint, encode_uvarint

EDGES = [
    (0, 1),
    (127, 1),
    (128, 2),
    (16383, 2),
    (16384, 3),
    (2097151, 3),
    (2097152, 4),
    (2**28 - 1, 4),
    (2**28, 5),
    (2**32 - 1, 5),
]


@pytest.mark.parametrize(("value", "size"), EDGES)
def test_sizes(value: int, size: int) -> None:
    assert len(encode_uvarint(value)) == size


@given(st.integers(0, 2**32 - 1), st.binary(max_size=3))
def test_round_trip(value: int, tail: bytes) -> None:
    data = encode_uvarint(value)
    assert decode_uvarint(b"x" + data + tail, 1) == (value, 1 + len(data))
    assert read_uvarint(data + tail, 0) == (value, len(data))


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff\xff\xff\xff", b"\x80\x80\x80\x80\x80\x00"])
def test_cut_off_or_too_long(data: bytes) -> None:
    with pytest.raises(DecodeError, match="varint"):
        decode_uvarint(data, 0)
    with pytest.raises((CodecDeclined, IndexError)):
        long_length(data, 1, data[0])
