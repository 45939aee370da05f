"""The frame splitter: any cut of a stream gives the same frames, and impossible sizes are refused at once."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.errors import DecodeError
from ottla.wire.framing import AT_ONCE_BYTES, FIRST_BYTES, FREE_BYTES, REUSED_BYTES_MIN, FrameSplitter, InvalidFrame

FRAMES = st.lists(st.binary(max_size=40), max_size=8)


def framed(frames: list[bytes]) -> bytes:
    return b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)


@given(frames=FRAMES, cuts=st.lists(st.integers(1, 30), min_size=1, max_size=20), read_ahead=st.integers(4, 64))
def test_any_cut_gives_the_same_frames(frames: list[bytes], cuts: list[int], read_ahead: int) -> None:
    stream, splitter, got = framed(frames), FrameSplitter(100, bytearray(read_ahead)), []
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
    stream, splitter, got = framed(frames), FrameSplitter(100, bytearray(read_ahead)), []
    while stream:
        target = splitter.writable()
        assert len(target) > 0
        count = min(amount, len(target), len(stream))
        target[:count] = stream[:count]
        del target
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
    splitter = FrameSplitter(1 << 20, bytearray(16))
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


@pytest.mark.parametrize("start", ["16030100", "16030302"])
def test_a_tls_handshake_is_called_by_its_name(start: str) -> None:
    with pytest.raises(InvalidFrame, match="began a TLS handshake where no TLS is spoken"):
        FrameSplitter(104_857_600).feed(bytes.fromhex(start))


def test_the_largest_allowed_frame_and_an_empty_one() -> None:
    assert FrameSplitter(100).feed(framed([bytes(100), b""])) == [bytes(100), b""]


def test_splitters_share_a_read_ahead_buffer() -> None:
    ahead = bytearray(64)
    first, second = FrameSplitter(100, ahead), FrameSplitter(100, ahead)
    streams = framed([b"one", b"x" * 40, b"three"]), framed([b"ONE", b"Y" * 90, b"THREE"])
    got: tuple[list[bytearray], list[bytearray]] = [], []
    for position in range(0, 200, 3):
        for splitter, stream, frames in zip((first, second), streams, got, strict=True):
            frames += splitter.feed(stream[position : position + 3])
    assert got == ([b"one", b"x" * 40, b"three"], [b"ONE", b"Y" * 90, b"THREE"])


class Store:
    """A `reserve` function with a fixed budget."""

    def __init__(self, left: int) -> None:
        self.left = left
        self.asked: list[int] = []

    def reserve(self, size: int) -> bool:
        self.asked.append(size)
        if size > self.left:
            return False
        self.left -= size
        return True


def test_a_frame_of_default_producer_size_gets_its_buffer_at_once() -> None:
    store = Store(1 << 30)
    splitter = FrameSplitter(1 << 30, reserve=store.reserve)
    splitter.feed((1 << 20).to_bytes(4, "big") + bytes(FIRST_BYTES))
    assert store.asked == [1 << 20]
    assert splitter.reserved_bytes == 1 << 20
    assert len(splitter.writable()) == (1 << 20) - FIRST_BYTES
    (frame,) = splitter.feed(bytes((1 << 20) - FIRST_BYTES))
    assert len(frame) == 1 << 20
    assert splitter.reserved_bytes == 0
    assert splitter.feed(framed([bytes(FREE_BYTES)]))
    assert store.asked == [1 << 20], "small frames need no reservation"


@pytest.mark.parametrize("size", [FREE_BYTES, 1 << 20, 100_000_000])
def test_a_size_alone_takes_little_memory(size: int) -> None:
    store = Store(1 << 30)
    splitter = FrameSplitter(size, reserve=store.reserve)
    splitter.feed(size.to_bytes(4, "big"))
    assert len(splitter.writable()) == FIRST_BYTES
    splitter.feed(bytes(FIRST_BYTES - 1))
    assert len(splitter.writable()) == 1
    assert not store.asked
    splitter.feed(b"x")
    assert len(splitter.writable()) == min(size, AT_ONCE_BYTES + FIRST_BYTES) - FIRST_BYTES, "it means to send the rest"


def test_buffer_of_a_huge_frame_grows_as_bytes_arrive() -> None:
    size = 100_000_000
    store = Store(1 << 30)
    splitter = FrameSplitter(size, reserve=store.reserve)
    tracemalloc.start()
    splitter.feed(size.to_bytes(4, "big") + bytes(10))
    assert tracemalloc.get_traced_memory()[0] < 2 * AT_ONCE_BYTES
    tracemalloc.stop()
    received = 10
    block = bytes(300_000)
    frames: list[bytearray] = []
    while received < size:
        assert splitter.reserved_bytes <= 2 * received + AT_ONCE_BYTES + FREE_BYTES
        part = block[: size - received]
        frames += splitter.feed(part)
        received += len(part)
    assert [len(frame) for frame in frames] == [size]
    assert (1 << 30) - store.left == size, "in the end exactly the frame has been reserved"


def test_splitter_is_starved_until_grow_succeeds() -> None:
    store = Store(0)
    splitter = FrameSplitter(1 << 20, bytearray(100), reserve=store.reserve)
    data = bytes(range(200)) * 500
    stream = framed([b"small", data, b"next"])
    begun = 9 + 4 + FIRST_BYTES
    assert splitter.feed(stream[:begun]) == [b"small"]
    assert splitter.is_starved
    assert not splitter.grow()
    assert splitter.reserved_bytes == 0
    store.left = FREE_BYTES + FIRST_BYTES
    assert splitter.grow()
    assert not splitter.is_starved
    room = len(splitter.writable())
    assert room == FREE_BYTES
    assert splitter.feed(stream[begun : begun + room]) == []
    assert splitter.is_starved
    store.left = 1 << 20
    assert splitter.grow()
    assert splitter.feed(stream[begun + room :]) == [data, b"next"]
    assert splitter.is_between_frames


def test_abandon_drops_the_frame_and_its_reservation() -> None:
    granted: list[int] = []
    splitter = FrameSplitter(10_000_000, None, lambda size_bytes: granted.append(size_bytes) or True)
    assert splitter.feed((5_000_000).to_bytes(4, "big") + bytes(70_000)) == []
    assert splitter.abandon() == sum(granted) > 0
    assert splitter.abandon() == 0
    assert splitter.is_between_frames


def test_buffers_of_large_frames_are_used_again_when_nothing_reads_them() -> None:
    splitter = FrameSplitter(1 << 30, reuses=True)

    def received(size: int, fill: int) -> bytearray:
        (frame,) = splitter.feed(framed([bytes([fill]) * size]))
        assert frame == bytes([fill]) * size
        return frame

    frame = received(REUSED_BYTES_MIN, 1)
    first = id(frame)
    second = id(received(REUSED_BYTES_MIN + 5, 2))  # the name `frame` holds the first
    assert second != first
    view = memoryview(frame)[10:20]
    del frame
    assert id(received(REUSED_BYTES_MIN, 3)) == second  # the view holds the first
    assert bytes(view) == b"\1" * 10
    view.release()
    assert id(received(REUSED_BYTES_MIN + 1_000, 4)) == first
    assert id(received(REUSED_BYTES_MIN, 5)) == first


@given(st.lists(st.tuples(st.integers(REUSED_BYTES_MIN - 2, REUSED_BYTES_MIN * 3), st.booleans()), max_size=8))
def test_frames_that_are_held_never_change(wanted: list[tuple[int, bool]]) -> None:
    splitter, held = FrameSplitter(1 << 30, reuses=True), []
    for number, (size, is_held) in enumerate(wanted):
        (frame,) = splitter.feed(framed([bytes([number]) * size]))
        assert frame == bytes([number]) * size
        if is_held:
            held.append((number, memoryview(frame)))
        del frame
        assert all(view == bytes([each]) * len(view) for each, view in held)


def test_a_small_frame_ends_the_keeping_of_buffers() -> None:
    splitter = FrameSplitter(1 << 30, reuses=True)
    splitter.feed(framed([bytes(REUSED_BYTES_MIN)]))
    assert splitter._kept
    splitter.feed(framed([b"small"]))
    assert not splitter._kept
