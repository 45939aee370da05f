"""The statements that are ours, as values. Everything else is `Passed`: Spark SQL runs it as it is."""

from __future__ import annotations

from dataclasses import dataclass, field

STREAM, TABLE = "stream", "table"


@dataclass(frozen=True)
class Column:
    """A declared column."""

    name: str
    type: str
    """As Spark SQL writes it."""
    is_key: bool = False


@dataclass(frozen=True)
class Window:
    """A window of ksqlDB, which GROUP BY is to have."""

    function: str
    """`window` or `session_window`."""
    arguments: tuple[str, ...]

    def call(self, time: str) -> str:
        """The function for Spark, over the column `time`."""
        return f"{self.function}({', '.join([time, *(repr(each) for each in self.arguments)])})"


@dataclass(frozen=True)
class Query:
    """A SELECT for Spark, and what we have taken off its end."""

    sql: str
    is_live: bool = False
    """EMIT CHANGES."""
    limit: int | None = None
    """The LIMIT of a live query. A batch keeps its own."""
    start: int = field(default=0, compare=False)
    """Where it begins in its statement."""
    window: Window | None = None
    """ksqlDB's WINDOW clause, which is taken out of `sql`."""


@dataclass(frozen=True)
class Create:
    """CREATE STREAM | TABLE name (columns) WITH (options) [AS SELECT …]."""

    kind: str
    name: str
    columns: tuple[Column, ...]
    options: dict[str, str]
    is_replacing: bool = False
    if_not_exists: bool = False
    query: Query | None = None


@dataclass(frozen=True)
class Drop:
    """DROP STREAM | TABLE [IF EXISTS] name."""

    kind: str
    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class Show:
    """SHOW STREAMS | TABLES | TOPICS | QUERIES."""

    what: str


@dataclass(frozen=True)
class Describe:
    """DESCRIBE name."""

    name: str


@dataclass(frozen=True)
class Print:
    """PRINT topic [FROM BEGINNING] [LIMIT n]."""

    topic: str
    from_beginning: bool = False
    limit: int | None = None


@dataclass(frozen=True)
class Set:
    """SET 'name'='value'; without a value it shows one setting, without a name all of them."""

    name: str | None = None
    value: str | None = None


@dataclass(frozen=True)
class Unset:
    """UNSET 'name'."""

    name: str


@dataclass(frozen=True)
class Insert:
    """INSERT INTO name [(columns)] SELECT … | VALUES (…)."""

    name: str
    columns: tuple[str, ...]
    query: Query


@dataclass(frozen=True)
class Terminate:
    """TERMINATE query | ALL."""

    name: str


@dataclass(frozen=True)
class Select:
    """A query whose rows are shown."""

    query: Query


@dataclass(frozen=True)
class Passed:
    """Any other statement, for Spark."""

    sql: str
    view: str | None = None
    """The name of the view that it makes, if it makes one."""
    window: Window | None = None
    is_local: bool = field(default=False, compare=False)
    """Whether it changes nothing but the session: EXPLAIN, a temporary view or variable."""


Statement = Create | Drop | Show | Describe | Set | Unset | Insert | Terminate | Select | Print | Passed
NEEDS_SPARK = (Insert, Select, Print, Passed)


def is_local(statement: Statement) -> bool:
    """Whether a statement leaves nothing behind in Spark, and ends by itself."""
    match statement:
        case Passed():
            return statement.is_local
        case Select(query) | Insert(query=query):
            return not query.is_live
        case Create():
            return statement.query is None
        case Set(name=name) | Unset(name=name):
            return name is None or not name.lower().startswith("spark.")
        case Print():
            return False
        case _:
            return True
