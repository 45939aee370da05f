"""Errors of SQL statements: our own sentences, and Spark's errors cut down to a sentence and the place in the SQL."""

from __future__ import annotations

import re
from typing import Any

from ottla.errors import OttlaError
from ottla.errors.texts import near_words
from ottla.spark.errors import sentence_of

_CONDITION = re.compile(r"^\[[A-Z0-9_.]+\]\s*")
_STATE = re.compile(r"\s*\(?SQLSTATE: \w+\)?")
_POSITION = re.compile(r"\s*;?\s*\(?line (\d+),? pos (\d+)\)?[.;]*")
_WRAPPED = re.compile(r"(?:[\w.]+(?:Exception|Error): )+")
_ADVICE = re.compile(
    r"\s*(?:If necessary set|If you did not qualify|Verify the spelling|To tolerate the error on drop|Use `try_).*$"
)


_OURS = {
    "Sorting is not supported on streaming": "a live result cannot be sorted: leave ORDER BY or EMIT CHANGES out",
    "Limits are not supported on streaming": "a live result can only be limited at its end: write EMIT CHANGES LIMIT n",
}
"""Sentences for errors of Spark that speak of its programming interface."""


class SqlError(OttlaError):
    """A statement cannot be run as it is."""


class PlacedSqlError(SqlError):
    """The text begins with the line and column, counted from the whole text of all statements."""


class SqlSyntaxError(PlacedSqlError):
    """A statement that Spark's grammar does not have."""


def spark_sentence(error: BaseException, sql: str | None = None) -> str:
    """One line for an error of Spark, and a second one with the place in the SQL if it is known."""
    ours = sentence_of(error)
    if ours is not None:
        return ours
    if isinstance(error, OttlaError):
        return str(error)
    text = _message(error)
    for begin, sentence in _OURS.items():
        if text.startswith(begin):
            return sentence
    place = _POSITION.search(text)
    sentence = _POSITION.sub("", text).strip().rstrip(";")
    found = _place(error, place, sql)
    return sentence if found is None else f"{sentence}\n{found}"


def analysis_sentence(error: Any) -> str:
    """A sentence for what Spark's analysis refuses: the name that is not there, and those that are near."""
    condition = error.getCondition() or ""
    found = error.getMessageParameters() or {}
    if condition.startswith("UNRESOLVED_COLUMN"):
        name = _plain_name(found.get("objectName", ""))
        return f"there is no column {name}: {_there_is(name, found.get('proposal', ''))}"
    if condition == "FIELD_NOT_FOUND":
        name = _plain_name(found.get("fieldName", ""))
        return f"there is no field {name}: {_there_is(name, found.get('fields', ''))}"
    if condition == "TABLE_OR_VIEW_NOT_FOUND":
        return f"there is no stream, table, topic or view {_plain_name(found.get('relationName', ''))}"
    if condition.startswith("UNRESOLVED_ROUTINE"):
        return f"there is no function {_plain_name(found.get('routineName', ''))}: SHOW FUNCTIONS lists those of Spark"
    return spark_sentence(error)


def fragment_of(error: Any) -> tuple[str, int] | None:
    """The words of the SQL that Spark refuses, and where they begin; None if it does not say."""
    start = _start(error)
    if start is None:
        return None
    fragment: str = error.getQueryContext()[0].fragment()
    return fragment, start


def _plain_name(name: str) -> str:
    return name.replace("`", "")


def _there_is(name: str, proposals: str) -> str:
    """Words for names that are there: the similar ones, or some."""
    names = list(dict.fromkeys(_plain_name(each).strip().rpartition(".")[2] for each in proposals.split(",") if each.strip()))
    near = near_words(name.rpartition(".")[2], names, count=3)
    if near:
        return f"did you mean {' or '.join(near)}?"
    return f"there is {', '.join(names)}" if names else "nothing that is read has one of that name"


def _message(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    if text.rstrip(":").endswith(("An error occurred while calling", "failed")) and len(lines) > 1:
        text = lines[1]
    text = _STATE.sub("", _CONDITION.sub("", _WRAPPED.sub("", text)))
    # A parse error has its position on a line of its own: == SQL (line 1, position 8) ==.
    if "line" not in text and (found := re.search(r"\(line (\d+), pos(?:ition)? (\d+)\)", str(error))):
        text += f" (line {found[1]}, pos {found[2]})"
    return _ADVICE.sub("", text)


def _place(error: BaseException, place: re.Match[str] | None, sql: str | None) -> str | None:
    """The line of the SQL with a mark under the place that Spark means."""
    if sql is None:
        return None
    start = _start(error)
    if start is not None and start <= len(sql):
        line = sql.count("\n", 0, start) + 1
        column = start - (sql.rfind("\n", 0, start) + 1)
    elif place is not None:
        line, column = int(place[1]), int(place[2])
    else:
        return None
    lines = sql.splitlines()
    if not 0 < line <= len(lines):
        return None
    return f"line {line}, column {column + 1}: {_around(lines[line - 1], column)}"


def _around(line: str, column: int) -> str:
    """The words at a column, at most some forty characters."""
    rest = line[column : column + 40].strip()
    return f"near {rest!r}" if rest else "at the end of the line"


def _start(error: BaseException) -> int | None:
    try:
        context: Any = error.getQueryContext()  # type: ignore[attr-defined]
        start: int = context[0].startIndex()
    except Exception:  # not an error of Spark, no context, or one without a place
        return None
    return start if start >= 0 else None
