"""The frame splitter: any cut of a stream gives the same frames, and impossible sizes are refused at once."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.errors import DecodeError
from ottla.wire.framing import FrameSplitter, InvalidFrame

FRAMES = st.lists(st.binary(max_size=40), max_size=8)


def framed(frames: list[bytes]) -> bytes:
    return b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)


@given(frames=FRAMES, cuts=st.lists(st.integers(1, 30), min_size=1, max_size=20), read_ahead=st.integers(4, 64))
def test_any_cut_gives_the_same_frames(frames: list[bytes], cuts: list[int], read_ahead: int) -> None:
    stream, splitter, got = framed(frames), FrameSplitter(100, read_ahead), []
    position = index = 0
    while position < len(stream):
        size = cuts[index % len(cuts)]
        got += splitter.feed(stream[position : position + size])
        position += size
        index += 1
    assert got == frames
    assert splitter.is_between_frames


@given(frames=FRAMES, amount=st.integers(1, 64), read_ahead=st.integers(4, 64))
def test_receiving_straight_into_the_buffer(frames: list[bytes], amount: int, read_ahead: int) -> None:
    stream, splitter, got = framed(frames), FrameSplitter(100, read_ahead), []
    while stream:
        target = splitter.writable()
        assert len(target) > 0
        count = min(amount, len(target), len(stream))
        target[:count] = stream[:count]
        stream = stream[count:]
        got += splitter.received(count)
    assert got == frames


def test_every_frame_is_a_buffer_of_its_own() -> None:
    splitter = FrameSplitter(100)
    first, second = splitter.feed(framed([b"one", b"two"]))
    first[0] = 0
    assert isinstance(first, bytearray)
    assert second == b"two"
    (third,) = splitter.feed(framed([b"three"]))
    assert (first, second, third) == (b"\0ne", b"two", b"three")


def test_a_large_frame_is_received_into_its_own_buffer() -> None:
    splitter = FrameSplitter(1 << 20, read_ahead_bytes=16)
    assert splitter.feed((1000).to_bytes(4, "big") + b"abc") == []
    assert len(splitter.writable()) == 997
    assert not splitter.is_between_frames
    (frame,) = splitter.feed(bytes(997))
    assert len(frame) == 1000


@pytest.mark.parametrize("size", [-1, -(1 << 31), 101, (1 << 31) - 1])
def test_impossible_sizes_are_refused_before_anything_is_allocated(size: int) -> None:
    splitter = FrameSplitter(100)
    tracemalloc.start()
    with pytest.raises(InvalidFrame, match=f"frame of {size} bytes") as caught:
        splitter.feed(size.to_bytes(4, "big", signed=True))
    assert tracemalloc.get_traced_memory()[1] < 100_000
    tracemalloc.stop()
    assert isinstance(caught.value, DecodeError)


def test_the_largest_allowed_frame_and_an_empty_one() -> None:
    assert FrameSplitter(100).feed(framed([bytes(100), b""])) == [bytes(100), b""]
