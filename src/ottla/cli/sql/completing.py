"""Completion in the shell: keywords, declared names and topics. A cluster that does not answer offers no topics."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from ottla.spark.sql.catalog import Catalog
from ottla.spark.sql.declarations import METADATA

KEYWORDS = (
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP",
    "BY",
    "ORDER",
    "HAVING",
    "LIMIT",
    "JOIN",
    "LEFT",
    "ON",
    "AS",
    "WITH",
    "CREATE",
    "STREAM",
    "TABLE",
    "REPLACE",
    "DROP",
    "SHOW",
    "STREAMS",
    "TABLES",
    "TOPICS",
    "QUERIES",
    "DESCRIBE",
    "INSERT",
    "INTO",
    "VALUES",
    "SET",
    "UNSET",
    "TERMINATE",
    "EMIT",
    "CHANGES",
    "COUNT",
    "SUM",
    "AVG",
    "MIN",
    "MAX",
    "WINDOW",
    "DISTINCT",
    "UNION",
    "ALL",
    "AND",
    "OR",
    "NOT",
    "NULL",
    "IS",
    "IN",
    "LIKE",
    "BETWEEN",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "BIGINT",
    "INT",
    "DOUBLE",
    "STRING",
    "BOOLEAN",
    "TIMESTAMP",
    "DECIMAL",
    "ARRAY",
    "MAP",
    "STRUCT",
)
FRESH_S = 10.0
"""How long the topics are remembered."""


class Completer:
    """The function that readline calls: `completer(text, 0)`, `completer(text, 1)`, … until it returns None."""

    def __init__(
        self, catalog: Catalog, topics: Callable[[], Collection[str]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._catalog = catalog
        self._ask = topics
        self._clock = clock
        self._topics: list[str] = []
        self._asked_s: float | None = None
        self._matches: list[str] = []

    def __call__(self, text: str, state: int) -> str | None:
        if state == 0:
            self._matches = self.matches(text)
        return self._matches[state] if state < len(self._matches) else None

    def matches(self, text: str) -> list[str]:
        """The words that begin with `text`: keywords in the case that is typed, names as they are."""
        if not text:
            return []
        upper = [word for word in KEYWORDS if word.startswith(text.upper())]
        keywords = upper if text[0].isupper() else [word.lower() for word in upper]
        names = {*(each.name for each in self._catalog), *self._known_topics(), *METADATA}
        for each in self._catalog:
            names |= {column.name for column in each.columns}
        return [*keywords, *sorted(name for name in names if name.startswith(text))]

    def _known_topics(self) -> list[str]:
        now_s = self._clock()
        if self._asked_s is None or now_s - self._asked_s > FRESH_S:
            self._asked_s = now_s
            try:
                self._topics = sorted(self._ask())
            except Exception:  # an error message would garble the line being typed
                self._topics = []
        return self._topics
