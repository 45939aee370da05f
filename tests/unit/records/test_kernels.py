"""The variants of the kernels: byte for byte and error for error the same, and loaded as asked for."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.logs.record_data import Row, plain, rows, timestamps

from ottla.errors import OttlaError
from ottla.records import kernel
from ottla.records.kernels import PURE_ASKED, is_compiled

SOURCES = Path(kernel.__file__).parent


def outcome(call: Any, *arguments: Any) -> Any:
    """What a call returns, or which typed error it raises."""
    try:
        return call(*arguments)
    except (OttlaError, ValueError, OverflowError) as problem:
        return type(problem), str(problem) if isinstance(problem, OttlaError) else ""


def encoded(variant: Any, made: list[Row], base_timestamp: int) -> tuple[bytes, int]:
    buffer = bytearray(b"header")
    end, max_timestamp = variant.kernel.encode_rows(buffer, 6, made, base_timestamp)
    return bytes(buffer[:end]), max_timestamp


@given(rows(min_size=0), timestamps)
def test_both_write_the_same_bytes(variants: Any, made: list[Row], base_timestamp: int) -> None:
    assert encoded(variants[0], made, base_timestamp) == encoded(variants[1], made, base_timestamp)


@given(rows(), timestamps, timestamps)
def test_records_and_rows_are_written_alike(variant: Any, made: list[Row], base_timestamp: int, offset: int) -> None:
    base_offset = abs(offset) // 2
    records = [variant.kernel.Record(base_offset + index, *row) for index, row in enumerate(made)]
    buffer = bytearray(6)
    end, max_timestamp = variant.kernel.encode_records(buffer, 6, records, base_offset, base_timestamp)
    data, expected = encoded(variant, made, base_timestamp)
    assert (bytes(buffer[6:end]), max_timestamp) == (data[6:], expected)


@given(rows(), timestamps, timestamps, st.none() | timestamps)
def test_both_read_the_same_records(
    variants: Any, made: list[Row], base_offset: int, base_timestamp: int, append_time_ms: int | None
) -> None:
    data, _ = encoded(variants[0], made, 1234)
    pure, compiled = (
        [
            plain(one)
            for one in variant.kernel.RecordIterator(data, 6, len(data), len(made), base_offset, base_timestamp, append_time_ms)
        ]
        for variant in variants
    )
    assert pure == compiled
    assert [one[2:] for one in compiled] == [row[1:] for row in made]


@given(rows(), timestamps)
def test_what_is_written_is_read(variant: Any, made: list[Row], base_timestamp: int) -> None:
    data, _ = encoded(variant, made, base_timestamp)
    found = list(variant.kernel.RecordIterator(data, 6, len(data), len(made), 0, base_timestamp, None))
    assert [plain(one) for one in found] == [(index, *row) for index, row in enumerate(made)]


@given(rows(max_size=4), st.data())
def test_both_find_the_same_damage(variants: Any, made: list[Row], data: st.DataObject) -> None:
    raw, _ = encoded(variants[0], made, 0)
    damaged = bytearray(raw[6:])
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(damaged)))
    whole = bytes(damaged[:cut]) if data.draw(st.booleans()) else bytes(damaged)
    count = data.draw(st.just(len(made)) | st.integers(-1, 2**31 - 1))

    def read(variant: Any) -> Any:
        return [plain(one) for one in variant.kernel.RecordIterator(whole, 0, len(whole), count, 0, 0, None)]

    assert outcome(read, variants[0]) == outcome(read, variants[1])
    walks = [outcome(variant.columns.walk_records, whole, 0, len(whole), count, 0) for variant in variants]
    assert walks[0] == walks[1]
    # What one kernel takes for whole the other does not refuse: readers and validation agree.
    assert isinstance(walks[0][0], int) == isinstance(outcome(read, variants[0]), list)


@given(st.binary(max_size=60), st.integers(0, 9), timestamps)
def test_both_make_the_same_of_any_bytes(variants: Any, raw: bytes, count: int, base: int) -> None:
    def read(variant: Any) -> Any:
        return [plain(one) for one in variant.kernel.RecordIterator(raw, 0, len(raw), count, base, base, None)]

    assert outcome(read, variants[0]) == outcome(read, variants[1])
    assert outcome(variants[0].columns.walk_records, raw, 0, len(raw), count, base) == outcome(
        variants[1].columns.walk_records, raw, 0, len(raw), count, base
    )


@pytest.mark.parametrize(("start", "end"), [(-1, 5), (0, 99), (5, 4), (99, 99)])
def test_a_range_outside_the_bytes_is_refused(variant: Any, start: int, end: int) -> None:
    kind, _ = outcome(variant.kernel.RecordIterator, bytes(20), start, end, 1, 0, 0, None)
    assert issubclass(kind, OttlaError)
    kind, _ = outcome(variant.columns.walk_records, bytes(20), start, end, 1, 0)
    assert issubclass(kind, OttlaError)


@pytest.mark.parametrize("stamp", [2**63, -(2**63) - 1])
def test_a_timestamp_that_does_not_fit(variant: Any, stamp: int) -> None:
    with pytest.raises(OverflowError):
        variant.kernel.encode_rows(bytearray(9), 0, [(stamp, None, None, ())], 0)


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 4096, 70_000])
def test_a_buffer_grows_as_it_must(variant: Any, size: int) -> None:
    made: list[Row] = [(5, bytes(size), b"v" * size, (("k" * size, bytes(size)),))] * 3
    data, _ = encoded(variant, made, 5)
    found = list(variant.kernel.RecordIterator(data, 6, len(data), 3, 0, 5, None))
    assert [plain(one)[1:] for one in found] == made


def test_varints_are_read_as_java_reads_them(variant: Any) -> None:
    """Bits beyond the 32nd or 64th are dropped; a number that goes on longer is refused."""
    body = b"\x00" + b"\xff" * 9 + b"\x7f" + b"\x00\x01\x01\x00"  # the timestamp delta has 70 bits, all set
    data = bytes([len(body) * 2]) + body
    (record,) = variant.kernel.RecordIterator(data, 0, len(data), 1, 0, 0, None)
    assert record.timestamp == -(2**63)
    endless = b"\x00" + b"\xff" * 10 + b"\x00\x00\x01\x01\x00"
    kind, text = outcome(
        list, variant.kernel.RecordIterator(bytes([len(endless) * 2]) + endless, 0, len(endless) + 1, 1, 0, 0, None)
    )
    assert issubclass(kind, OttlaError), text


def test_the_compiled_variant_is_not_older_than_its_source(variants: Any) -> None:
    for name in ("kernel", "kernel_columns", "kernel_batch", "kernel_partition", "kernel_frames"):
        built = Path(getattr(variants[1], name.replace("kernel_", "")).__file__).stat().st_mtime
        for source in (f"{name}.py", f"{name}.pxd", "kernel_fields.pxd"):
            assert built >= (SOURCES / source).stat().st_mtime, f"{source} was changed: run `make setup`"


@pytest.mark.parametrize(("asked", "expected"), [("1", "pure"), ("0", "compiled"), ("", "compiled")])
def test_the_environment_chooses_the_variant(variants: Any, asked: str, expected: str) -> None:
    program = "from ottla.records.kernels import Record, walk_records; print(Record.__module__, walk_records.__module__)"
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "OTTLA_PURE": asked}, capture_output=True, text=True, check=True
    )
    suffix = "_pure" if expected == "pure" else ""
    assert done.stdout.split() == [f"ottla.records.kernel{suffix}", f"ottla.records.kernel_columns{suffix}"]


def test_this_run_uses_the_variant_that_was_asked_for() -> None:
    from ottla.records.kernels import Record

    assert Record.__module__.endswith("_pure") == PURE_ASKED
    assert is_compiled(sys.modules[__name__]) is False
