"""The shell's lines, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.cli.sql.session import Session
from ottla.cli.sql.shell import MORE, PROMPT, Shell, history_path
from ottla.spark.sql.errors import SqlError
from ottla.spark.sql.interrupts import Interrupted
from ottla.spark.sql.statements import Select


class Typing:
    """Lines that a person types; an exception is a key."""

    def __init__(self, *lines: str | type[BaseException]) -> None:
        self._lines: Iterator[Any] = iter(lines)
        self.prompts: list[str] = []

    def __call__(self, prompt: str) -> str:
        self.prompts.append(prompt)
        line = next(self._lines, EOFError)
        if not isinstance(line, str):
            raise line
        return line


def play(tmp_path: Path, run: Any, *lines: str | type[BaseException]) -> Typing:
    typing = Typing(*lines)
    Shell(SimpleNamespace(run=run), Session(master=None, remote=None, log=tmp_path / "log"), typing).run()  # type: ignore[arg-type]
    return typing


def test_lines_are_read_until_a_semicolon(tmp_path: Path) -> None:
    ran: list[str] = []
    typing = play(tmp_path, lambda each: ran.append(each.query.sql), "SELECT ';", "' AS a;", "", "SELECT 1; SELECT 2;")
    assert ran == ["SELECT ';\n' AS a", "SELECT 1", "SELECT 2"]
    assert typing.prompts == [PROMPT, MORE, PROMPT, PROMPT, PROMPT]


def test_ctrl_c_drops_the_lines_and_ctrl_d_ends_the_shell(tmp_path: Path) -> None:
    ran: list[Select] = []
    typing = play(tmp_path, ran.append, "SELECT", KeyboardInterrupt, "SELECT 1;", EOFError, "SELECT 2;")
    assert len(ran) == 1
    assert typing.prompts == [PROMPT, MORE, PROMPT, PROMPT]


@pytest.mark.parametrize("word", ["exit", "QUIT;", "\\q"])
def test_exit_ends_the_shell(tmp_path: Path, word: str) -> None:
    assert len(play(tmp_path, None, word, "SELECT 1;").prompts) == 1


def test_help_lists_the_statements(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    play(tmp_path, None, "help")
    assert "CREATE STREAM orders (id BIGINT" in capsys.readouterr().out


def test_error_and_interrupt_end_the_statement_and_not_the_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    errors: list[BaseException] = [SqlError("wrong"), Interrupted(), KeyboardInterrupt()]

    def run(statement: Any) -> None:
        raise errors.pop(0)

    play(tmp_path, run, "SELECT 1; SELECT 2;", "SELECT 3;", "SELECT 4;", "SELEC 'x' `;", "`;")
    assert errors == []
    assert capsys.readouterr().err.count("interrupted") == 2


def test_history_is_in_the_state_folder() -> None:
    assert history_path({"XDG_STATE_HOME": "/x"}) == Path("/x/ottla/sql_history")
