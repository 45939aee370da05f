"""The shell's lines, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.cli.sql.session import Session
from ottla.cli.sql.shell import FRESH_S, MORE, PROMPT, Completer, Shell, history_path, run_all
from ottla.spark.sql.catalog import Catalog
from ottla.spark.sql.declarations import Declaration
from ottla.spark.sql.errors import SqlError
from ottla.spark.sql.interrupts import Interrupted
from ottla.spark.sql.settings import Settings
from ottla.spark.sql.statements import Column, Select


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


def test_keywords_names_columns_and_topics_are_offered() -> None:
    catalog = Catalog()
    catalog.add(Declaration("sales", "stream", "s", "json", (Column("sum_total", "INT"),)))
    asked: list[int] = []
    clock = [0.0]

    def topics() -> list[str]:
        asked.append(1)
        return ["settled-orders"]

    completer = Completer(catalog, topics, lambda: clock[0])
    assert completer.matches("s") == [
        "select", "stream", "show", "streams", "set", "sum", "string", "struct", "sales", "settled-orders", "sum_total"
    ]  # fmt: skip
    assert completer.matches("SEL") == ["SELECT"]
    assert completer.matches("_off") == ["_offset"]
    assert completer.matches("") == []
    assert len(asked) == 1
    clock[0] = FRESH_S + 1
    assert [completer("settl", state) for state in range(2)] == ["settled-orders", None]
    assert len(asked) == 2


def test_cluster_that_does_not_answer_offers_no_topics() -> None:
    def topics() -> list[str]:
        raise OSError("away")

    assert Completer(Catalog(), topics).matches("SEL") == ["SELECT"]


def runner(run: Any) -> Any:
    cluster = SimpleNamespace(topics=lambda: {"orders": 1})
    return SimpleNamespace(catalog=Catalog(), settings=Settings({}), cluster=cluster, run=run)


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setattr(Session, "check", lambda self: None)
    return Session(master=None, remote=None, log=tmp_path / "sql.log")


def test_statements_run_in_order_until_one_fails(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    ran: list[Any] = []

    def run(statement: Any) -> None:
        ran.append(statement.query.sql)
        if len(ran) == 2:
            raise ValueError("[X] no such thing SQLSTATE: 1\nat a.b.c(D.java:1)")

    assert run_all("SELECT 1;\nSELECT 2;\nSELECT 3", runner(run), session) == 1
    assert ran == ["SELECT 1", "SELECT 2"]
    error = capsys.readouterr().err
    assert error == f"ottla: line 2: no such thing\n({session.log} has the trace)\n"
    assert "D.java" in session.log.read_text()


def test_interrupted_statement_interrupts_the_run(session: Session) -> None:
    def run(statement: Any) -> None:
        raise Interrupted

    with pytest.raises(KeyboardInterrupt):
        run_all("SELECT 1", runner(run), session)


def test_text_without_statements_does_nothing(session: Session) -> None:
    assert run_all(" -- nothing;\n", runner(None), session) == 0
