"""The key → offset map: behaves as a dictionary, in memory of a fixed size."""

import sys
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.log.compaction.offset_map import NOT_FOUND, SLOT_BYTES, OffsetMap, fingerprint


@given(st.lists(st.tuples(st.binary(max_size=24), st.integers(0, 2**62)), max_size=400), st.sampled_from((0.5, 0.9, 1.0)))
def test_like_a_dictionary(puts: list[tuple[bytes, int]], load_factor: float) -> None:
    offsets = OffsetMap(SLOT_BYTES * 300, load_factor)
    model: dict[bytes, int] = {}
    for key, offset in puts:
        if offsets.is_full:
            break
        offsets.put(key, offset)
        model[key] = offset
        assert offsets.latest_offset == offset
    assert offsets.count == len(model)
    for key, _ in puts:
        assert offsets.get(key) == model.get(key, NOT_FOUND)


def test_filled_to_the_last_slot() -> None:
    """Every bucket overflows somewhere, and everything is still found."""
    offsets = OffsetMap(SLOT_BYTES * 3200, 1.0)
    number = 0
    while not offsets.is_full:
        offsets.put(b"key %d" % number, number)
        number += 1
    assert number == offsets.capacity == 3200
    assert offsets.utilization == 1.0
    assert all(offsets.get(b"key %d" % index) == index for index in range(number))
    offsets.put(b"key 7", 99)
    assert (offsets.get(b"key 7"), offsets.count) == (99, 3200)


def test_holds_as_many_keys_as_apaches_for_the_same_memory() -> None:
    assert OffsetMap(128 * 1024 * 1024, 0.9).capacity == int(128 * 1024 * 1024 // 24 * 0.9)
    with pytest.raises(ValueError, match="hold no key"):
        OffsetMap(SLOT_BYTES, 0.9)


def test_memory_is_bounded_by_what_was_given() -> None:
    memory_bytes = 1024 * 1024
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        offsets = OffsetMap(memory_bytes, 0.9)
        number = 0
        while not offsets.is_full:
            offsets.put(b"a key that is longer than a fingerprint %d" % number, number)
            number += 1
        used = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert number > 39_000
    assert used < memory_bytes * 1.02 + sys.getsizeof(offsets)


def test_fingerprints_of_short_and_long_keys_never_meet() -> None:
    long_key = b"0123456789abcdef"
    mark = fingerprint(long_key)
    assert len(mark) == 16
    assert fingerprint(mark[:15]) != mark
    assert len({fingerprint(b"\0" * length) for length in range(40)}) == 40


def test_a_match_across_two_fingerprints_is_no_match() -> None:
    """A key whose fingerprint is the end of one and the beginning of the next fingerprint in a bucket."""
    offsets = OffsetMap(SLOT_BYTES * 32, 1.0)  # one bucket
    first, second = b"A" * 15, b"BBBBBBB\x0fCCCCCCC"
    across = b"AAAAAAA\x0fBBBBBBB"
    assert fingerprint(across) in fingerprint(first) + fingerprint(second)
    offsets.put(first, 1)
    offsets.put(second, 2)
    assert offsets.get(across) == NOT_FOUND
    offsets.put(across, 3)
    assert [offsets.get(key) for key in (first, second, across)] == [1, 2, 3]
