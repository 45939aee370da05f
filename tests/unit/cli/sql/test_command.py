"""`ottla sql` as far as it needs no Spark: declarations, lists, settings, and every mistake."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.cli.real_broker import RunOttla

CREATE = "CREATE STREAM o (id BIGINT, n INT) WITH (topic='{}', format='json', key='id')"


@pytest.fixture(autouse=True)
def _without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test here may start Spark."""

    def refuse(*arguments: object, **keywords: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("ottla.spark.session.local_session", refuse)


def test_declarations_are_remembered_from_run_to_run(ottla: RunOttla, topic: str, tmp_path: Path) -> None:
    assert ottla("sql", CREATE.format(topic)).rc == 0
    assert ottla("sql", "SHOW STREAMS").lines == ["Stream\tTopic\tFormat\tColumns", f"o\t{topic}\tjson\tid BIGINT, n INT"]
    assert ottla("sql", "DESCRIBE O").lines[1:3] == ["id\tBIGINT\tkey", "n\tINT\t"]
    assert ottla("sql", "SHOW STREAMS", "--catalog", tmp_path / "other.json").lines == ["Stream\tTopic\tFormat\tColumns"]
    said = ottla("sql", "SHOW TOPICS", "--json")
    assert {"Topic": topic, "Partitions": 2, "Declared as": "o"} in [json.loads(line) for line in said.lines]
    assert ottla("sql", "DROP STREAM o; SHOW STREAMS; SHOW TABLES; SHOW QUERIES").rc == 0
    assert list((tmp_path / "config" / "ottla" / "sql").iterdir())


def test_statements_come_from_a_file_or_a_pipe(ottla: RunOttla, tmp_path: Path) -> None:
    path = tmp_path / "a.sql"
    path.write_text("-- settings\nSET 'auto.offset.reset'='earliest';\nSET 'auto.offset.reset';")
    expected = ["Setting\tValue\tRemark", "auto.offset.reset\tearliest\t"]
    assert ottla("sql", "-f", path).lines == expected
    assert ottla("sql", stdin=path.read_bytes()).lines == expected
    assert ottla("sql", "-f", "-", stdin=path.read_bytes()).lines == expected


def test_topic_is_made_if_partitions_are_given(ottla: RunOttla, topic: str) -> None:
    new = f"{topic}-new"
    assert ottla("sql", f"CREATE TABLE {topic}_t (id INT) WITH (topic='{new}', format='json', partitions=3)").rc == 0
    assert f"{new}\t3\t" in ottla("sql", "SHOW TOPICS").out


@pytest.mark.parametrize(
    ("arguments", "rc", "words"),
    [
        (("SELECT * FROM zzzz",), 1, "there is no stream, table or topic zzzz"),
        (("SELECT 1; SELEC 'x",), 1, "the quote ' in line 1 has no end"),
        (("SELECT * FROM topc-1",), 1, "did you mean topic-"),
        (("CREATE STREAM s (a INT)",), 1, "the format of stream s is missing"),
        (("SET 'auto.offset.reset'='x'",), 1, "it must be earliest or latest"),
        (("CREATE STREAM s WITH (format='json') AS SELECT 1",), 1, "runs only in the shell"),
        (("SELECT 1", "-f", "x.sql"), 2, "give statements or --file, not both"),
        (("-f", "/no/such.sql"), 2, "cannot be read"),
        (("SELECT 1", "--master", "local", "--remote", "sc://x"), 2, "exclude each other"),
        (("SELECT 1", "--max-rows", "0"), 2, "0 is not in the range"),
    ],
)
def test_mistake_is_told_before_spark_starts(
    ottla: RunOttla, topic: str, arguments: tuple[str, ...], rc: int, words: str
) -> None:
    said = ottla("sql", *arguments)
    assert said.rc == rc
    assert words in said.err
    assert said.out == ""
    assert len(said.err.rpartition("ottla: ")[2].splitlines()) == 1


def test_broker_that_is_away_is_told_before_spark_starts(ottla: RunOttla) -> None:
    said = ottla("sql", "SELECT * FROM orders", "-b", "localhost:1", "--wait", "0")
    assert said.rc == 1
    assert "Start a node with `ottla up`" in said.err


def test_nothing_is_run_if_a_later_statement_is_wrong(ottla: RunOttla, topic: str) -> None:
    said = ottla("sql", f"{CREATE.format(topic)};\nSELECT * FROM zzzz")
    assert "line 2: there is no stream" in said.err
    assert ottla("sql", "SHOW STREAMS").lines == ["Stream\tTopic\tFormat\tColumns"]


def test_what_would_run_on_is_refused_in_one_shot(ottla: RunOttla, topic: str) -> None:
    said = ottla("sql", f"INSERT INTO {topic} SELECT value FROM {topic} EMIT CHANGES")
    assert said.rc == 1
    assert "a continuous INSERT runs only in the shell" in said.err
