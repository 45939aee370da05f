"""Lines from a file descriptor, in pieces of any size."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.cli.produce import input as module
from ottla.cli.produce.input import LineInput


def read_all(pieces: Sequence[bytes]) -> list[bytes]:
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
        source = LineInput(reading)
        lines: list[bytes] = []
        while (some := await source.next_lines()) is not None:
            assert some
            lines += some
        return lines

    try:
        return asyncio.run(run())
    finally:
        os.close(reading)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\r", b"\r\n"]), min_size=1).map(b"".join), max_size=6))
def test_lines_are_split_as_in_kafkas_tool_at_any_piece_size(pieces: list[bytes]) -> None:
    assert read_all(pieces) == b"".join(pieces).splitlines()


def test_lines_with_only_carriage_returns_are_emitted_at_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TAIL_BYTES_MAX", 10)
    assert read_all([b"a\r" * 20, b"b\r\n", b"c"]) == [*[b"a"] * 20, b"b", b"c"]


def test_files_and_empty_input_are_read(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"line\n" * 200_000)

    async def count(fd: int) -> int:
        source = LineInput(fd)
        found = 0
        while (some := await source.next_lines()) is not None:
            found += len(some)
        return found

    with open(file, "rb") as opened:
        assert asyncio.run(count(opened.fileno())) == 200_000
    with open(os.devnull, "rb") as nothing:
        assert asyncio.run(count(nothing.fileno())) == 0


def test_waiting_for_more_has_a_limit() -> None:
    reading, writing = os.pipe()

    async def run() -> tuple[bool, bool]:
        source = LineInput(reading)
        first = await source.wait(10)
        os.write(writing, b"x\n")
        return first, await source.wait(10_000)

    try:
        assert asyncio.run(run()) == (False, True)
    finally:
        os.close(reading)
        os.close(writing)
