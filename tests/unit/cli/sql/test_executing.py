"""Statements of a text, one after the other."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.cli.sql.session import Session
from ottla.cli.sql.shell import run_all
from ottla.spark.sql.catalog import Catalog
from ottla.spark.sql.interrupts import Interrupted
from ottla.spark.sql.settings import Settings


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
