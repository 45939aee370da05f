"""Output of the verbs: tables on a terminal, plain lines in a pipe, JSON with --json.

Results go to standard output; warnings, questions and errors to standard error. A question is asked only if both standard input
and standard error are a terminal. Everything printed here is escaped: names may contain terminal commands.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from ottla.errors import OttlaError

if TYPE_CHECKING:
    from rich.console import Console


_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # C0, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidi controls
    "\u2028\u2029"  # line and paragraph separators
    "\ud800-\udfff]"  # lone surrogates: Python joins pairs
)


def escape(text: str) -> str:
    r"""`text` on one line, with control characters as Python escapes them: `\n`, `\x1b`, `\u202e`. Backslashes stay."""
    if text.isprintable():
        return text
    return _UNSAFE.sub(lambda found: ascii(found[0])[1:-1], text)


def escape_bytes(data: bytes) -> str:
    r"""Bytes as text on one line; bytes that are not valid UTF-8 become `\xff`."""
    return escape(data.decode("utf-8", "backslashreplace"))


def escape_json(text: str) -> str:
    r"""JSON with control characters as `\u009b`. It decodes to the same value: they occur only within strings."""
    if text.isprintable():
        return text
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


HEADING_STYLE, NOTE_STYLE = "bold cyan", "dim"
WIDE = "ottla.wide"
"""The key in `Context.meta` that --wide sets."""


def is_for_people(as_json: bool = False, plain: bool = False) -> bool:
    """Whether the output is a table on a terminal."""
    return not as_json and not plain and sys.stdout.isatty()


def is_typed() -> bool:
    """Whether standard input is a terminal. `sys.stdin` is None where a command is started without one."""
    return sys.stdin is not None and sys.stdin.isatty()


def can_ask() -> bool:
    """Whether a person can see a question and answer it."""
    return is_typed() and sys.stderr.isatty()


def say(*parts: str, err: bool = False) -> None:
    """Print one line, escaped, with a tab between `parts`."""
    click.echo("\t".join(map(escape, parts)), err=err)


def print_data(lines: Iterable[str]) -> None:
    """Print lines that a program reads back: unchanged in a pipe, escaped on a terminal."""
    is_for_terminal = sys.stdout.isatty()
    for line in lines:
        click.echo(escape(line) if is_for_terminal else line, color=True)  # color=False strips ESC from names


def warn(text: str, *, lines: bool = False) -> None:
    """Print a message on standard error. With `lines`, line breaks in `text` are kept instead of escaped."""
    click.echo("ottla: " + "\n".join(map(escape, text.split("\n") if lines else [text])), err=True)


def fit(line: str, width: int) -> str:
    """The line, cut off if it is wider than the terminal."""
    return line if len(line) <= width else f"{line[: max(0, width - 1)]}…"


def confirm(question: str, yes: bool, needs_yes: bool = False) -> None:
    """Ask on a terminal unless `yes`; raises if the answer is no. Without a terminal it is yes, unless it `needs_yes`."""
    if yes:
        return
    if not can_ask():
        if needs_yes:
            raise OttlaError("nothing was changed: add --yes to say that you mean it")
    elif not click.confirm(escape(question), err=True):
        raise OttlaError("nothing was changed")


def print_json(value: Any) -> None:
    print_json_text(json.dumps(value, ensure_ascii=False))


def print_json_text(text: str) -> None:
    """Print JSON that is in a text already."""
    click.echo(escape_json(text))


def is_wide() -> bool:
    """Whether the user gave --wide."""
    context = click.get_current_context(silent=True)
    return context is not None and WIDE in context.meta


def make_wide() -> None:
    """Show all columns of tables in full from here on, as --wide does."""
    click.get_current_context().meta[WIDE] = True


def print_table(
    title: str | None, headings: Sequence[str], rows: Sequence[Sequence[object]], details: Sequence[str] = ()
) -> None:
    """Print a title, details below it, and a table that fits the terminal. `tables.py` explains the marks of headings."""
    from rich.text import Text

    from ottla.cli.common.tables import lay_out

    console, width = make_console()
    if title is not None:
        print_title(title, *details)
    table = lay_out(headings, [["" if cell is None else escape(str(cell)) for cell in row] for row in rows], width)
    for line in table.headings:
        console.print(Text(line, style=HEADING_STYLE), soft_wrap=True)
    for line in table.rows:
        console.print(Text(line), soft_wrap=True)
    if table.left_out:
        _print_wrapped(f"(no room for {', '.join(table.left_out)}: --wide shows all columns)", style=NOTE_STYLE)
    console.print()


def print_title(title: str, *details: str) -> None:
    """Print a title in bold, and indented lines below it."""
    _print_wrapped(title, style="bold")
    for line in details:
        _print_wrapped(line, indent=2)


def _print_wrapped(text: str, *, indent: int = 0, style: str = "") -> None:
    """Print text broken between words to fit the terminal. Lines after the first are indented four columns more."""
    from rich.text import Text

    from ottla.cli.common.tables import wrap

    console, width = make_console()
    first, *more = [escape(text)] if width is None else wrap(escape(text), width - indent - 4)
    for line in (" " * indent + first, *(" " * (indent + 4) + line for line in more)):
        console.print(Text(line, style=style), soft_wrap=True)


def make_console() -> tuple[Console, int | None]:
    """The terminal, and the maximum width of its lines; None with --wide."""
    import shutil

    from rich.console import Console

    # Not rich's own width: on a dumb terminal rich assumes 80 columns and ignores COLUMNS.
    return Console(highlight=False, markup=False), None if is_wide() else shutil.get_terminal_size().columns


def print_padded(headings: Sequence[str], rows: Sequence[Sequence[object]], widths: Sequence[int]) -> None:
    """Print lines for pipes. Cells are padded to their column's width, or its longest cell; columns of width 0 are not."""
    lines = [list(headings), *(["-" if cell is None else escape(str(cell)) for cell in row] for row in rows)]
    filled = [
        max(width, *map(len, column)) if width else 0 for width, column in zip(widths, zip(*lines, strict=True), strict=True)
    ]
    for line in lines:
        click.echo(" ".join(cell.ljust(width) for cell, width in zip(line, filled, strict=True)).rstrip())


def print_tabbed(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print lines for pipes with a tab after each cell, as Kafka's newer tools do."""
    lines = [list(headings), *([escape(str(cell)) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        click.echo("".join(f"{cell.ljust(width)}\t" for cell, width in zip(line, widths, strict=True)))
