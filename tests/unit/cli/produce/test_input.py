"""Files and standard input, cut at delimiters, in pieces of any size."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.cases.examples import examples

from ottla.cli.produce import lines as module
from ottla.cli.produce.lines import BadInput, Input, Lines


def read_all(source: Input) -> list[Lines]:
    async def run() -> list[Lines]:
        found = []
        while (some := await source.next_lines()) is not None:
            assert some.lines
            found.append(some)
        return found

    return asyncio.run(run())


def read_pieces(pieces: Sequence[bytes], delimiter: bytes | None = b"\n", limit: int = 1000) -> list[bytes]:
    """The lines, if the pieces arrive one by one, each after the one before was processed."""
    reading, writing = os.pipe()

    async def run() -> list[bytes]:
        loop = asyncio.get_running_loop()
        left = list(pieces)

        def feed() -> None:
            if left:
                os.write(writing, left.pop(0))
                loop.call_later(0, feed)
            else:
                os.close(writing)

        loop.call_soon(feed)
        source = Input(["-"], reading, delimiter, limit)
        lines: list[bytes] = []
        while (some := await source.next_lines()) is not None:
            lines += some.lines
        return lines

    try:
        return asyncio.run(run())
    finally:
        os.close(reading)


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\r\n"]), min_size=1).map(b"".join), max_size=6),
    st.sampled_from([b"\n", b"\r\n", b"\n\n", b"a"]),
)
def test_lines_are_the_same_at_any_piece_size(pieces: list[bytes], delimiter: bytes) -> None:
    expected = b"".join(pieces).split(delimiter)
    if expected[-1] == b"":
        expected.pop()
    assert read_pieces(pieces, delimiter) == expected


def test_carriage_return_belongs_to_its_line() -> None:
    assert read_pieces([b"dos\r\n", b"old mac\rline\n"]) == [b"dos\r", b"old mac\rline"]


def test_whole_input_is_one_record() -> None:
    assert read_pieces([b"a\nb", b"\n"], None) == [b"a\nb\n"]
    assert read_pieces([], None) == [b""]


def test_records_without_end_are_refused_at_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIECE_BYTES", 4)
    with pytest.raises(BadInput, match=r"standard input, line 2 is larger than a record can be, which is 10 bytes"):
        read_pieces([b"a\n", b"x" * 11], limit=10)
    with pytest.raises(BadInput, match=r"standard input is larger"):
        read_pieces([b"x" * 11], None, limit=10)


def test_files_are_read_one_after_the_other(tmp_path: Path) -> None:
    names = []
    for name, content in (("a", b"1\n2"), ("empty", b""), ("b", b"3\n4\n")):
        (tmp_path / name).write_bytes(content)
        names.append(str(tmp_path / name))
    with open(tmp_path / "a", "rb") as opened:
        os.lseek(opened.fileno(), 2, os.SEEK_SET)
        source = Input([*names, "-"], opened.fileno())
        assert source.size_bytes == 8
        found = read_all(source)
    assert [line for each in found for line in each.lines] == [b"1", b"2", b"3", b"4", b"2"]
    assert [each.place(0) for each in found] == [
        f"{names[0]}, line 1",
        f"{names[0]}, line 2",
        f"{names[2]}, line 1",
        "standard input, line 1",
    ]
    assert source.read_bytes == 8


def test_large_files_and_no_input(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"line\n" * 200_000)
    source = Input([str(file)], None)
    assert sum(len(each.lines) for each in read_all(source)) == 200_000
    with open(os.devnull, "rb") as nothing:
        source = Input(["-"], nothing.fileno())
        assert read_all(source) == []
        assert source.size_bytes is None


def test_places_name_records_and_whole_files(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"a,b")
    (first, second) = read_all(Input([str(file)], None, b","))
    assert (first.place(0), second.place(0)) == (f"{file}, record 1", f"{file}, record 2")
    (whole,) = read_all(Input([str(file)], None, None))
    assert whole.place(0) == str(file)
