"""SQL files of pipelines: splits them into statements, and finds what each defines. Pure: text in, definitions out.

Only the head of a statement is read here; the query is Spark's to parse. The statements are those of `spark-pipelines`:

    CREATE [OR REFRESH] STREAMING TABLE name [(columns)] [clauses] [AS query]
    CREATE [OR REFRESH] MATERIALIZED VIEW name [(columns)] [clauses] AS query
    CREATE TEMPORARY VIEW name AS query
    CREATE FLOW name AS INSERT INTO target BY NAME query

The columns may hold expectations, which `spark-pipelines` does not know. Rows that do not meet one
are counted, and kept unless it says more:

    CONSTRAINT name EXPECT (condition) [ON VIOLATION DROP ROW | FAIL UPDATE | DEAD LETTER [TO 'topic']]
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ottla.spark.pipelines.counts import DEAD_LETTER, DROP, FAIL, WARN
from ottla.spark.pipelines.errors import PipelineError
from ottla.spark.pipelines.expectations import Expectation, check_names
from ottla.spark.sql.errors import SqlError
from ottla.spark.sql.syntax import check_syntax

STREAMING_TABLE, MATERIALIZED_VIEW, TEMPORARY_VIEW, FLOW = "streaming table", "materialized view", "temporary view", "flow"

_TOKEN = re.compile(
    r"--[^\n]*|/\*.*?\*/|'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|`(?:``|[^`])*`|\s+|[A-Za-z_][\w]*|\d+(?:\.\d+)?|.", re.DOTALL
)
_NAME = r"((?:`[^`]+`|\w+)(?:\s*\.\s*(?:`[^`]+`|\w+))*)"
_HEAD = re.compile(
    rf"CREATE\s+(?:OR\s+REFRESH\s+)?(STREAMING\s+TABLE|MATERIALIZED\s+VIEW|TEMPORARY\s+VIEW)\s+(?:IF\s+NOT\s+EXISTS\s+)?{_NAME}",
    re.IGNORECASE,
)
_FLOW = re.compile(rf"CREATE\s+FLOW\s+{_NAME}\s+AS\s+INSERT\s+INTO\s+{_NAME}\s+BY\s+NAME\s+", re.IGNORECASE)
_CONSTRAINT = re.compile(
    rf"CONSTRAINT\s+{_NAME}\s+EXPECT\s*\((.*)\)"
    r"(?:\s*ON\s+VIOLATION\s+(DROP\s+ROW|FAIL\s+UPDATE|DEAD\s+LETTER)(?:\s+TO\s+('[^']+'))?)?",
    re.IGNORECASE | re.DOTALL,
)
_VIOLATIONS = {"": WARN, "DROP ROW": DROP, "FAIL UPDATE": FAIL, "DEAD LETTER": DEAD_LETTER}
_BRACKETS, _TYPE_BRACKETS = {"(": 1, ")": -1}, {"<": 1, ">": -1}
_FORMAT = re.compile(r"\bUSING\s+(\w+)", re.IGNORECASE)
_PARTITIONS = re.compile(r"\bPARTITIONED\s+BY\s*\(([^)]*)\)", re.IGNORECASE)


@dataclass(frozen=True)
class Statement:
    """What one statement defines."""

    kind: str
    name: str
    line: int
    query: str | None = None
    target: str | None = None
    """The table or sink that a flow writes to."""
    format: str | None = None
    schema: str | None = None
    partition_columns: list[str] = field(default_factory=list)
    expectations: list[Expectation] = field(default_factory=list)
    begin: tuple[int, int] = field(default=(1, 1), compare=False)
    """The line and column of the query."""


def parse_sql(text: str, path: str) -> list[Statement]:
    """The statements of a file."""
    found = []
    for line, text_of_one in split_statements(text):
        statement = _parse(text_of_one, line, path)
        if (query := statement.query) is not None:
            start = text_of_one.rindex(query)
            lines = text_of_one.count("\n", 0, start)
            statement = replace(statement, begin=(line + lines, start - text_of_one.rfind("\n", 0, start)))
            try:
                check_syntax(query, begin=statement.begin)
            except SqlError as error:
                raise PipelineError(f"{path} {error}") from None
        found.append(statement)
    return found


def split_statements(text: str) -> Iterator[tuple[int, str]]:
    """Each statement with the number of its first line, without comments. Semicolons in quotes and comments do not split."""
    parts: list[str] = []
    line = first = 1
    for found in _TOKEN.finditer(text + ";"):
        token = found[0]
        if token == ";":
            if statement := "".join(parts).strip():
                yield first, statement
            parts = []
        elif token.startswith(("--", "/*")):
            parts.append(re.sub(r"[^\n]", " ", token))  # places stay as they are
        else:
            if not token.isspace() and not "".join(parts).strip():
                first = line
            parts.append(token)
        line += token.count("\n")


def _parse(text: str, line: int, path: str) -> Statement:
    if flow := _FLOW.match(text):
        return Statement(FLOW, _plain(flow[1]), line, text[flow.end() :], _plain(flow[2]))
    head = _HEAD.match(text)
    if head is None:
        start = " ".join(text.split()[:4])
        raise PipelineError(
            f"{path} line {line}: a pipeline has no statement {start} …; it may create a streaming table, "
            "a materialized view, a temporary view or a flow"
        )
    kind = " ".join(head[1].lower().split())
    clauses, query = _split_at_as(text[head.end() :])
    if query is None and kind != STREAMING_TABLE:
        raise PipelineError(f"{path} line {line}: {kind} {_plain(head[2])} has no query: add AS SELECT …")
    inside = _columns(clauses)
    rest = clauses if inside is None else clauses[clauses.index(inside) + len(inside) :]
    schema, expectations = _without_constraints(inside, f"{path} line {line}: {_plain(head[2])}")
    kind_of_files, partitions = _FORMAT.search(rest), _PARTITIONS.search(rest)
    return Statement(
        kind,
        _plain(head[2]),
        line,
        query,
        format=kind_of_files[1].lower() if kind_of_files else None,
        schema=schema,
        partition_columns=[_plain(each) for each in partitions[1].split(",")] if partitions else [],
        expectations=expectations,
    )


def _without_constraints(inside: str | None, place: str) -> tuple[str | None, list[Expectation]]:
    """The columns of a list, and its expectations."""
    if inside is None:
        return None, []
    columns, expectations = [], []
    for part in _split_at_commas(inside):
        if not re.match(r"\s*CONSTRAINT\b", part, re.IGNORECASE):
            columns.append(part)
            continue
        found = _CONSTRAINT.fullmatch(part.strip())
        if found is None:
            raise PipelineError(
                f"{place}: {' '.join(part.split())} is no expectation: write CONSTRAINT name EXPECT (condition), and after it, "
                "if wanted, ON VIOLATION with DROP ROW, FAIL UPDATE or DEAD LETTER TO 'topic'"
            )
        action = _VIOLATIONS[" ".join((found[3] or "").upper().split())]
        topic = None if found[4] is None else found[4][1:-1]
        expectations.append(Expectation(_plain(found[1]), found[2].strip(), action, topic))
    check_names(expectations, place)
    return ",".join(columns).strip() if columns else None, expectations


def _split_at_commas(text: str) -> list[str]:
    parts, depth, begin = [], 0, 0
    for found in _TOKEN.finditer(text):
        # In a type such as MAP<STRING, INT> these are brackets, in a condition they compare.
        is_condition = text[begin:].lstrip()[:10].upper() == "CONSTRAINT"
        depth += (_BRACKETS if is_condition else _BRACKETS | _TYPE_BRACKETS).get(found[0], 0)
        if depth == 0 and found[0] == ",":
            parts.append(text[begin : found.start()])
            begin = found.end()
    return [*parts, text[begin:]]


def _split_at_as(text: str) -> tuple[str, str | None]:
    """The clauses before the AS of a statement, and the query after it."""
    depth = 0
    for found in _TOKEN.finditer(text):
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        if depth == 0 and found[0].upper() == "AS":
            return text[: found.start()], text[found.end() :].strip()
    return text, None


def _columns(clauses: str) -> str | None:
    """The columns in parentheses right after the name."""
    stripped = clauses.lstrip()
    if not stripped.startswith("("):
        return None
    depth = 0
    for position, letter in enumerate(stripped):
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if depth == 0:
            return stripped[1:position]
    return None


def _plain(name: str) -> str:
    """`db`.`orders` as db.orders."""
    return ".".join(part.strip().strip("`") for part in name.split("."))
