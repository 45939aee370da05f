"""The SQL that moves staged rows into their table: appends, upserts, deletes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ottla.spark.tables.postgres.connecting import quoted, quoted_table

ROW_NUMBER, TASK_NUMBER = "_ottla_row", "_ottla_task"


def listed(names: Sequence[str]) -> str:
    """Names of columns, as SQL."""
    return ", ".join(map(quoted, names))


@dataclass(frozen=True)
class Move:
    """How staged rows get into a table."""

    table: str
    names: tuple[str, ...]
    """The columns that are stored."""
    keys: tuple[str, ...] = ()
    """The columns that identify a row; empty for appends."""
    order_by: str | None = None
    deleted: str | None = None
    """A boolean column of the staged rows: those where it is true delete the row with their key."""

    def statement(self, staged: Sequence[str]) -> str:
        """One statement for all staging tables. Of several rows with the same key, the last counts."""
        into = f"INSERT INTO {quoted_table(self.table)} ({listed(self.names)})"
        rows = self._staged(staged)
        if not self.keys:
            return f"{into} SELECT {listed(self.names)} FROM {rows} ORDER BY {TASK_NUMBER}, {ROW_NUMBER}"
        keys = listed(self.keys)
        first = f"{quoted(self.order_by)} DESC NULLS LAST, " if self.order_by else ""
        chosen = (
            f"SELECT DISTINCT ON ({keys}) {listed(self._selected)} FROM {rows} "
            f"ORDER BY {keys}, {first}{TASK_NUMBER} DESC, {ROW_NUMBER} DESC"
        )
        if self.deleted is None:
            return f"{into} {chosen} {self._on_conflict()}"
        flag = f"chosen.{quoted(self.deleted)}"
        return (
            f"WITH chosen AS MATERIALIZED ({chosen}), gone AS (DELETE FROM {quoted_table(self.table)} AS target USING chosen "
            f"WHERE {flag} AND {self._same_key()}{self._if_newer('chosen', 'target', ' AND (', ')')}) "
            f"{into} SELECT {listed(self.names)} FROM chosen WHERE {flag} IS NOT TRUE {self._on_conflict()}"
        )

    @property
    def _selected(self) -> tuple[str, ...]:
        return self.names if self.deleted is None else (*self.names, self.deleted)

    def _staged(self, staged: Sequence[str]) -> str:
        names = listed(self._selected)
        parts = [
            f"SELECT {names}, {number} AS {TASK_NUMBER}, {ROW_NUMBER} FROM {quoted(name)}" for number, name in enumerate(staged)
        ]
        return f"({' UNION ALL '.join(parts)}) AS staged"

    def _on_conflict(self) -> str:
        changed = [f"{quoted(name)} = EXCLUDED.{quoted(name)}" for name in self.names if name not in self.keys]
        if not changed:
            return f"ON CONFLICT ({listed(self.keys)}) DO NOTHING"
        newer = self._if_newer("EXCLUDED", quoted_table(self.table), " WHERE ", "")
        return f"ON CONFLICT ({listed(self.keys)}) DO UPDATE SET {', '.join(changed)}{newer}"

    def _same_key(self) -> str:
        return " AND ".join(f"target.{quoted(key)} = chosen.{quoted(key)}" for key in self.keys)

    def _if_newer(self, new: str, old: str, before: str, after: str) -> str:
        """A late batch must not replace or delete a newer row."""
        if self.order_by is None:
            return ""
        column = quoted(self.order_by)
        return f"{before}{old}.{column} IS NULL OR {new}.{column} >= {old}.{column}{after}"
