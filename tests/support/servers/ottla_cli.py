"""Runs the `ottla` command within the test process: fast, with the same input and output as in its own process.

    said = run_cli("topics", "list", "-b", bootstrap)
    assert said.rc == 0, said.err

Standard input is a real file or pipe, since verbs read its descriptor. Output is not a file, and a terminal only if a test
sets `columns`.
"""

import contextlib
import io
import os
import sys
import tempfile
import unittest.mock
from collections.abc import Iterator
from dataclasses import dataclass

from ottla.cli.main import main


@dataclass(frozen=True, slots=True)
class Said:
    """The exit code and output of a command."""

    rc: int
    out: str
    err: str
    raw: bytes = b""

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


class _Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def run_cli(*arguments: object, stdin: bytes = b"", columns: int | None = None, err_is_terminal: bool = False) -> Said:
    """Run one `ottla` command; on a terminal without colours if `columns`, its width, is given."""
    out = (io.TextIOWrapper if columns is None else _Terminal)(io.BytesIO(), "utf-8")
    err = (_Terminal if err_is_terminal else io.TextIOWrapper)(io.BytesIO(), "utf-8")
    rc = 0
    screen = {} if columns is None else {"COLUMNS": str(columns), "TERM": "dumb"}
    with (
        unittest.mock.patch.dict(os.environ, screen),
        _standard_input(stdin),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as ended:
            rc = ended.code if isinstance(ended.code, int) else 1
    raw, errors = _content(out), _content(err)
    return Said(rc, raw.decode("utf-8", "replace"), errors.decode("utf-8", "replace"), raw)


def _content(stream: io.TextIOWrapper) -> bytes:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue()


@contextlib.contextmanager
def _standard_input(content: bytes) -> Iterator[None]:
    before = sys.stdin
    with tempfile.TemporaryFile(buffering=0) as file:
        file.write(content)
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        sys.stdin = io.TextIOWrapper(io.FileIO(os.dup(file.fileno())))
        try:
            yield
        finally:
            sys.stdin.close()
            sys.stdin = before


def hanging_transactions(bootstrap: str) -> list[str]:
    """What `ottla transactions find-hanging` finds, of any age."""
    found = run_cli("transactions", "find-hanging", "-b", bootstrap, "--max-transaction-timeout", 0, "--json")
    assert found.rc == 0, found.err
    return [line for line in found.lines if line.strip() not in ("", "[]")]
