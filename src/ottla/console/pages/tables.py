"""What tables of many rows share: search, order and pages, all on the server."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from ottla.console.app import Visit

T = TypeVar("T")

ROWS = 100


class Table(NamedTuple):
    """One page of a table, and how to get to others."""

    rows: list[Any]
    total: int
    matching: int
    page: int
    pages: int
    order: str
    descending: bool
    search: str


def tabulate(
    visit: Visit, items: Sequence[T], name: Callable[[T], str], orders: Mapping[str, Callable[[T], Any]], default: str
) -> Table:
    """The rows that the query asks for: `q` is part of the name, `order` a column (`-lag`: descending), `page` from 1 on."""
    search = visit.query.get("q", "").strip()
    found = [each for each in items if search.lower() in name(each).lower()] if search else list(items)
    given = visit.query.get("order", default)
    order, descending = given.lstrip("-"), given.startswith("-")
    if order not in orders:
        order, descending = default.lstrip("-"), default.startswith("-")
    key = orders[order]
    found.sort(key=name, reverse=descending and order == "name")
    if order != "name":
        keys = [(key(each), each) for each in found]
        known = sorted((pair for pair in keys if pair[0] is not None), key=lambda pair: pair[0], reverse=descending)
        found = [each for _, each in known] + [each for value, each in keys if value is None]
    pages = max(1, -(-len(found) // ROWS))
    number = visit.number("page", 1, 1, pages)
    return Table(found[(number - 1) * ROWS : number * ROWS], len(items), len(found), number, pages, order, descending, search)
