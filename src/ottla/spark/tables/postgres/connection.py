"""Connections to PostgreSQL, and quoting of names."""

from __future__ import annotations

from typing import Any

from ottla.spark.errors import SinkError, SparkOptionError

CONNECT_TIMEOUT_S = 30


def psycopg() -> Any:
    """The package, or one sentence that says how to get it."""
    try:
        import psycopg as found
    except ImportError:
        raise SparkOptionError("PostgreSQL needs the package psycopg: pip install 'ottla[postgres]'") from None
    return found


def connect(url: str) -> Any:
    """A connection whose session speaks UTC. Not in autocommit: `with connection:` is one transaction."""
    found = psycopg()
    try:
        return found.connect(url, connect_timeout=CONNECT_TIMEOUT_S, options="-c timezone=UTC")
    except found.OperationalError as problem:
        first = str(problem).strip().splitlines()[0]
        raise SinkError(f"PostgreSQL cannot be reached with the option url: {first}") from None


def quoted(name: str) -> str:
    """A name of a column, as SQL."""
    return '"' + name.replace('"', '""') + '"'


def quoted_table(name: str) -> str:
    """`table` or `schema.table`, as SQL."""
    return ".".join(quoted(part) for part in name.split("."))


def literal(text: str) -> str:
    """A text, as SQL."""
    return "'" + text.replace("'", "''") + "'"
