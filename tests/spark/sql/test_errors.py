"""Spark's errors as sentences."""

from __future__ import annotations

import pytest

from ottla.spark.sql.errors import SqlError, spark_sentence


class Context:
    def __init__(self, start: int) -> None:
        self._start = start

    def startIndex(self) -> int:
        return self._start


class SparkLike(Exception):
    """An error with the texts and methods of PySpark's."""

    def __init__(self, text: str, start: int | None = None) -> None:
        super().__init__(text)
        self._start = start

    def getQueryContext(self) -> list[Context]:
        return [] if self._start is None else [Context(self._start)]


UNRESOLVED = "[UNRESOLVED_COLUMN] The column `idd` cannot be resolved. SQLSTATE: 42703; line 1 pos 7;\n'Project ['idd]\n"
PARSE = "\n[PARSE_SYNTAX_ERROR] Syntax error at or near 'x'. SQLSTATE: 42601 (line 2, pos 5)\n\n== SQL ==\nselect\nfrom x\n"


@pytest.mark.parametrize(
    ("error", "sql", "expected"),
    [
        (
            SparkLike(UNRESOLVED, 7),
            "SELECT idd FROM orders",
            "The column `idd` cannot be resolved.\nline 1, column 8: near 'idd FROM orders'",
        ),
        (SparkLike(UNRESOLVED), None, "The column `idd` cannot be resolved."),
        (SparkLike(PARSE), "SELECT\nfrom x", "Syntax error at or near 'x'.\nline 2, column 6: near 'x'"),
        (
            SparkLike(
                "[TABLE_OR_VIEW_NOT_FOUND] The table or view `x` cannot be found. Verify the spelling and correctness\nSearch"
            ),
            "SELECT 1",
            "The table or view `x` cannot be found.",
        ),
        (SparkLike("[USER_RAISED_EXCEPTION] boom SQLSTATE: P0001"), "SELECT 1", "boom"),
        (
            SparkLike("Sorting is not supported on streaming Data, unless …;\n~Sort"),
            "x",
            "a live result cannot be sorted",
        ),
        (SqlError("our own"), "x", "our own"),
        (ValueError(), "x", "ValueError"),
        (
            SparkLike("[X] Traceback:\nottla.spark.errors.SourceError: there is no topic a SQLSTATE: 38000"),
            "SELECT 1",
            "there is no topic a",
        ),
    ],
)
def test_error_is_a_sentence_and_a_place(error: Exception, sql: str | None, expected: str) -> None:
    found = spark_sentence(error, sql)
    assert found == expected or (expected.startswith("a live") and found.startswith(expected))
    assert len(found.splitlines()) <= 2
