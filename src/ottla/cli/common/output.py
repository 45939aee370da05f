"""How verbs speak to people and programs: tables on a terminal, plain lines in a pipe, JSON where asked for.

Results go to standard output; warnings, questions and errors to standard error. Nothing ever waits for an answer unless a
person sits at both ends.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import click

from ottla.errors import OttlaError


def is_for_people(as_json: bool = False, plain: bool = False) -> bool:
    """Whether the output is a table on a terminal."""
    return not as_json and not plain and sys.stdout.isatty()


def is_typed() -> bool:
    """Whether a person types the input. A command may be started without any."""
    return sys.stdin is not None and sys.stdin.isatty()


def can_ask() -> bool:
    """Whether somebody is there to answer a question."""
    return is_typed() and sys.stderr.isatty()


def warn(text: str) -> None:
    click.echo(f"ottla: {text}", err=True)


def confirm(question: str, yes: bool) -> None:
    """Ask on a terminal unless told not to; a no ends the command."""
    if not yes and can_ask() and not click.confirm(question, err=True):
        raise OttlaError("nothing was changed")


def print_json(value: Any) -> None:
    click.echo(json.dumps(value, ensure_ascii=False))


def print_table(title: str | None, headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Columns as wide as their content, below a title; a heading that begins with `#` is for numbers, which sit right."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for heading in headings:
        table.add_column(heading.removeprefix("#"), justify="right" if heading.startswith("#") else "left", overflow="fold")
    for row in rows:
        table.add_row(*("" if cell is None else str(cell) for cell in row))
    console = Console(highlight=False, markup=False)
    if title is not None:
        console.print(title, style="bold", soft_wrap=True)
    console.print(table)
    console.print()


def print_padded(headings: Sequence[str], rows: Sequence[Sequence[object]], widths: Sequence[int]) -> None:
    """Lines for pipes: cells filled up to their column's width, or to its longest cell; columns of width 0 are as they come."""
    lines = [list(headings), *(["-" if cell is None else str(cell) for cell in row] for row in rows)]
    filled = [
        max(width, *map(len, column)) if width else 0 for width, column in zip(widths, zip(*lines, strict=True), strict=True)
    ]
    for line in lines:
        click.echo(" ".join(cell.ljust(width) for cell, width in zip(line, filled, strict=True)).rstrip())


def print_tabbed(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Lines for pipes with a tab after each cell, as the newer ones of Kafka's tools print them."""
    lines = [list(headings), *([str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        click.echo("".join(f"{cell.ljust(width)}\t" for cell, width in zip(line, widths, strict=True)))
