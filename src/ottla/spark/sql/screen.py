"""`Screen`: where results go. The command line prints them; tests keep them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol


class Shown(NamedTuple):
    """A column of a result."""

    name: str
    kind: str = "string"
    """Spark's name of its type, such as `long` or `timestamp`; `list` for names with commas between them."""


class Screen(Protocol):
    """Shows results and messages."""

    rows_max: int | None
    """How many rows of a batch are shown; None for all."""

    def table(self, columns: Sequence[Shown], rows: Iterable[Sequence[Any]]) -> None:
        """A result that is complete."""

    def live(self, columns: Sequence[Shown], batches: Iterator[Sequence[Sequence[Any]]]) -> int:
        """A result that grows, batch by batch, until the iterator ends. Returns how many rows were shown."""

    def note(self, text: str) -> None:
        """A sentence about a result."""

    def warn(self, text: str) -> None:
        """A sentence about a problem that does not stop the statement."""


def shown_columns(df: Any) -> list[Shown]:
    """The columns of a DataFrame."""
    return [Shown(each.name, each.dataType.typeName()) for each in df.schema.fields]
