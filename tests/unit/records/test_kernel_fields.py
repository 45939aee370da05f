"""Numbers and bytes in buffers: the pure functions, compared with those that are compiled into every kernel."""

import gc
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.records import kernel_fields as plain
from ottla.wire.varint import decode_uvarint, encode_uvarint

SOURCES = Path(plain.__file__).parents[2]
SIZES = [1, 2, 4, 8]
int64s = st.integers(-(2**63), 2**63 - 1) | st.integers(-300, 300)
uint64s = st.integers(0, 2**64 - 1) | st.integers(0, 300)
buffers = st.lists(st.integers(0, 255) | st.sampled_from([0x7F, 0x80, 0xFF]), max_size=14).map(bytes)

PROBE = """
# cython: language_level=3
from ottla.records cimport kernel_fields as fields

def wrap64(long long one, long long other): return fields.wrap64(one + other)
def number(bytes raw, at, size): return fields.number(raw, at, size)
def put_number(bytearray out, at, value, size): fields.put_number(out, at, value, size)
def copy(bytearray out, at, bytes raw, start, size): return fields.copy(out, at, raw, start, size)
def uvarint(bytes raw, position, end): return fields.uvarint(raw, position, end)
def varint(bytes raw, position, end, bits_max): return fields.varint(raw, position, end, bits_max)
def uvarint_size(value): return fields.uvarint_size(value)
def varint_size(value): return fields.varint_size(value)
def put_uvarint(bytearray out, at, value): return fields.put_uvarint(out, at, value)
def put_varint(bytearray out, at, value): return fields.put_varint(out, at, value)
def batch_header(bytes raw, at): return fields.batch_header(raw, at)
def murmur2(bytes raw, start, size): return fields.murmur2(raw, start, size)
def are_headers(bytes raw, position, limit): return fields.are_headers(raw, position, limit)
def untrack(made): fields.untrack(made)
"""
SETUP = """
from Cython.Build import cythonize
from setuptools import Extension, setup

setup(ext_modules=cythonize(
    [Extension("probe", ["probe.pyx"], extra_compile_args=["-O0", "-g0", "-fwrapv"])], include_path=[{sources!r}]
))
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """A module that exports the compiled functions to Python."""
    pytest.importorskip("Cython", reason="without Cython nothing is compiled")
    folder = tmp_path_factory.mktemp("probe")
    (folder / "probe.pyx").write_text(PROBE)
    (folder / "setup.py").write_text(SETUP.format(sources=str(SOURCES)))
    built = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=folder, capture_output=True, text=True, check=False
    )
    found = list(folder.glob("probe.*.so"))
    if not found:
        pytest.skip(f"there is no C compiler that works here: {built.stderr[-300:]}")
    spec = spec_from_file_location("probe", found[0])
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def written(put: Any, *arguments: Any) -> tuple[Any, bytes]:
    out = bytearray(16)
    return put(out, 1, *arguments), bytes(out)


@given(int64s, st.sampled_from(SIZES))
def test_a_number_is_read_as_it_was_written(value: int, size: int) -> None:
    out = bytearray(b"\xaa" * 12)
    plain.put_number(out, 2, value, size)
    assert plain.number(out, 2, size) & (1 << 8 * size) - 1 == value & (1 << 8 * size) - 1
    assert (out[:2], out[2 + size :]) == (b"\xaa" * 2, b"\xaa" * (10 - size))


@given(st.integers(0, 2**31 - 1))
def test_uvarints_are_those_of_the_protocol(value: int) -> None:
    out = bytearray(9)
    end = plain.put_uvarint(out, 2, value)
    assert out[2:end] == encode_uvarint(value)
    assert plain.uvarint_size(value) == end - 2
    assert plain.uvarint(out, 2, end) == decode_uvarint(bytes(out), 2) == (value, end)
    assert plain.uvarint(out, 2, end - 1) == (-1, end)


@given(int64s)
def test_a_varint_is_read_as_it_was_written(value: int) -> None:
    out = bytearray(16)
    end = plain.put_varint(out, 3, value)
    assert plain.varint_size(value) == end - 3
    assert plain.varint(out, 3, end, 64) == (value, end)
    assert plain.varint(out, 3, end - 1, 64)[1] > end - 1


@pytest.mark.parametrize(
    ("raw", "bits_max", "expected"),
    [
        (b"\x00", 32, (0, 1)),
        (b"\x01", 32, (-1, 1)),
        (b"\x02", 64, (1, 1)),
        (b"\xff\xff\xff\xff\x7f", 32, (-(2**31), 5)),  # the bits beyond the 32nd are dropped
        (b"\xff\xff\xff\xff\xff\x00", 32, (0, 7)),
        (b"\xff" * 9 + b"\x7f", 64, (-(2**63), 10)),
        (b"\xff" * 10 + b"\x00", 64, (0, 12)),
        (b"", 32, (0, 1)),
    ],
)
def test_varints_at_their_bounds(raw: bytes, bits_max: int, expected: tuple[int, int]) -> None:
    assert plain.varint(raw, 0, len(raw), bits_max) == expected


@pytest.mark.parametrize("raw", [b"\x80\x80\x80\x80\x08", b"\x80\x80\x80\x80\x80\x00", b"\x80", b""])
def test_malformed_uvarints_are_refused(raw: bytes) -> None:
    assert plain.uvarint(raw, 0, len(raw)) == (-1, len(raw) + 1)


@pytest.mark.slow
@given(int64s, int64s, uint64s, st.sampled_from(SIZES))
def test_compiled_functions_give_the_same_numbers(compiled: Any, value: int, other: int, bits: int, size: int) -> None:
    assert plain.wrap64(value + other) == compiled.wrap64(value, other)
    assert plain.varint_size(value) == compiled.varint_size(value)
    assert plain.uvarint_size(bits) == compiled.uvarint_size(bits)
    assert written(plain.put_varint, value) == written(compiled.put_varint, value)
    assert written(plain.put_uvarint, bits) == written(compiled.put_uvarint, bits)
    assert written(plain.put_number, value, size) == written(compiled.put_number, value, size)


@pytest.mark.slow
@given(buffers, st.data())
def test_compiled_functions_give_the_same_bytes(compiled: Any, raw: bytes, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(raw)))
    for end in (start, len(raw)):
        assert plain.uvarint(raw, start, end) == compiled.uvarint(raw, start, end)
        for bits_max in (32, 64):
            assert plain.varint(raw, start, end, bits_max) == compiled.varint(raw, start, end, bits_max)
    for size in SIZES:
        if start + size <= len(raw):
            assert plain.number(raw, start, size) == compiled.number(raw, start, size)
    assert written(plain.copy, raw, start, len(raw) - start) == written(compiled.copy, raw, start, len(raw) - start)


@pytest.mark.slow
@given(st.binary(min_size=64, max_size=64))
def test_compiled_function_reads_the_same_header(compiled: Any, raw: bytes) -> None:
    assert plain.batch_header(raw, 3) == compiled.batch_header(raw, 3)


@given(st.binary(max_size=200), st.integers(0, 3), st.integers(0, 9))
def test_hashes_are_the_same(compiled: ModuleType, raw: bytes, less: int, start: int) -> None:
    start = min(start, len(raw))
    size = max(0, len(raw) - less - start)
    alone = plain.murmur2(raw[start : start + size], 0, size)
    assert plain.murmur2(raw, start, size) == compiled.murmur2(raw, start, size) == alone


@given(buffers, st.integers(0, 14))
def test_headers_are_recognised_the_same(compiled: ModuleType, raw: bytes, limit: int) -> None:
    end = min(limit, len(raw))
    assert plain.are_headers(raw, 0, end) == compiled.are_headers(raw, 0, end)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"\x00", True),
        (b"\x02\x02k\x02v", True),
        (b"\x02\x02k\x01", True),  # a null value
        (b"\x02\x02k\x02", False),  # the value is missing
        (b"\x02\x01\x02v", False),  # a name cannot be null
        (b"\x00\x00", False),  # a byte is left over
        (b"\x01", False),  # a negative count
    ],
)
def test_headers_fill_their_place_exactly(compiled: ModuleType, raw: bytes, expected: bool) -> None:
    assert plain.are_headers(raw, 0, len(raw)) == compiled.are_headers(raw, 0, len(raw)) == expected


def test_the_collector_forgets_what_is_untracked(compiled: ModuleType) -> None:
    made: list[int] = []
    compiled.untrack(made)
    assert not gc.is_tracked(made)
    plain.untrack(made)
