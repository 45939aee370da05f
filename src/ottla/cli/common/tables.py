"""Lays out tables to fit a terminal: column widths, wrapping, shortening, omitted columns. Pure: text in, lines out.

The first character of a heading says what happens to its column on a narrow terminal:

    #Offset    numbers: aligned right; never shortened, wrapped or left out
    =Meaning   prose and lists: wrapped after blanks, commas, semicolons and dots within names
    ~Host      shortened in the middle first, then left out, the last such column first
    Topic      names: shortened in the middle if wrapping and shortening the others is not enough

A table that still does not fit becomes a block of lines per row, one line for each cell.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len

GAP = "  "
NAME_CELLS_MIN, SHORTENED_CELLS_MIN, WRAPPED_CELLS_MAX = 10, 8, 20
"""Minimum widths. A wrapped column keeps room for its longest word, up to that of the longest int64 and a comma."""
_WORD = re.compile(r"[^ ]* +|[^ ]+$")
_PART = re.compile(r"(?:[^ ,;.]|\.(?![a-zA-Z]))*(?:[ ,;]+|\.|$)")


@dataclass(slots=True)
class Layout:
    """Lines of headings (none if the table became blocks), lines of rows, and the headings of omitted columns."""

    headings: list[str] = field(default_factory=list)
    rows: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


class _Column:
    def __init__(self, heading: str, cells: Sequence[str]) -> None:
        self.mark = heading[0] if heading[:1] in ("#", "=", "~") else ""
        self.heading = heading.removeprefix(self.mark)
        self.cells = cells
        self.cells_width = max(map(cell_len, cells), default=0)
        self.words_width = max(map(cell_len, self.heading.split()), default=0)

    @property
    def natural_width(self) -> int:
        return max(cell_len(self.heading), self.cells_width)

    @property
    def width(self) -> int:
        """The width with the heading wrapped between words."""
        return max(self.words_width, self.cells_width)

    @property
    def width_min(self) -> int:
        limits = {"#": self.cells_width, "=": self._parts_width, "~": SHORTENED_CELLS_MIN, "": NAME_CELLS_MIN}
        return max(self.words_width, min(self.cells_width, limits[self.mark]))

    @property
    def _parts_width(self) -> int:
        """The width of the longest part that wrapping keeps whole."""
        parts = (cell_len(part.rstrip()) for cell in self.cells for part in _PART.findall(cell))
        return min(max(parts, default=0), WRAPPED_CELLS_MAX)

    def fit(self, text: str, width: int) -> list[str]:
        """The lines of a cell, all `width` wide."""
        lines = wrap(text, width, in_lists=True) if self.mark == "=" else [shorten(text, width)]
        return [_pad(line, width, self.mark == "#") for line in lines]

    def fit_heading(self, width: int) -> list[str]:
        return [_pad(line, width, self.mark == "#") for line in wrap(self.heading, width)]


def lay_out(headings: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> Layout:
    """The table in lines of at most `width`; None means unlimited."""
    cells = list(zip(*rows, strict=True)) if rows else [()] * len(headings)
    columns = [_Column(heading, column) for heading, column in zip(headings, cells, strict=True)]
    shown = list(columns)
    while True:
        widths = _widths(shown, width)
        if widths is not None:
            break
        giving_way = [column for column in shown if column.mark == "~"]
        if not giving_way:
            assert width is not None
            return Layout(rows=_blocks(columns, width))
        shown.remove(giving_way[-1])
    layout = Layout(left_out=[column.heading for column in columns if column not in shown])
    heads = [column.fit_heading(one) for column, one in zip(shown, widths, strict=True)]
    if any(column.heading for column in shown):
        layout.headings = _join(heads, widths, at_bottom=True)
    for number in range(len(rows)):
        fitted = [column.fit(column.cells[number], one) for column, one in zip(shown, widths, strict=True)]
        layout.rows += _join(fitted, widths)
    return layout


def _widths(columns: Sequence[_Column], width: int | None) -> list[int] | None:
    """The width of each column; None if they do not fit.

    Names are not shortened while a `~` column is present: the caller drops those columns first.
    """
    widths = [column.natural_width for column in columns]
    gaps = len(GAP) * (len(columns) - 1)
    if width is None or sum(widths) + gaps <= width:
        return widths
    widths = [column.width for column in columns]
    excess = sum(widths) + gaps - width
    marks = [column.mark for column in columns]
    for mark in ("=", "~", *([] if "~" in marks else [""])):
        shrinking = [number for number, each in enumerate(marks) if each == mark]
        while excess > 0:
            able = [number for number in shrinking if widths[number] > columns[number].width_min]
            if not able:
                break
            widths[max(able, key=widths.__getitem__)] -= 1
            excess -= 1
    return widths if excess <= 0 else None


def _join(cells: Sequence[Sequence[str]], widths: Sequence[int], at_bottom: bool = False) -> list[str]:
    """Cells of one or more lines, side by side."""
    height = max(map(len, cells), default=0)
    filled = []
    for lines, width in zip(cells, widths, strict=True):
        empty = [" " * width] * (height - len(lines))
        filled.append([*empty, *lines] if at_bottom else [*lines, *empty])
    return [GAP.join(line).rstrip() for line in zip(*filled, strict=True)]


def _blocks(columns: Sequence[_Column], width: int) -> list[str]:
    """A line for each cell, an empty line between rows."""
    indent = max(cell_len(column.heading) for column in columns)
    lines: list[str] = []
    for number in range(len(columns[0].cells)):
        lines += [""] if lines else []
        for column in columns:
            room = max(width - indent - len(GAP), WRAPPED_CELLS_MAX)
            parts = wrap(column.cells[number], room, in_lists=column.mark == "=")
            starts = [column.heading, *[""] * (len(parts) - 1)]
            lines += [f"{_pad(start, indent, False)}{GAP}{part}".rstrip() for start, part in zip(starts, parts, strict=True)]
    return lines


def _pad(text: str, width: int, right: bool) -> str:
    blanks = " " * (width - cell_len(text))
    return blanks + text if right else text + blanks


def shorten(text: str, width: int) -> str:
    """`text` with its middle replaced by `…`: ids differ at their beginning or their end."""
    if cell_len(text) <= width:
        return text
    head = text[: _fitting(text, width // 2)]
    tail = text[::-1]
    return f"{head}…{tail[: _fitting(tail, width - cell_len(head) - 1)][::-1]}"


def wrap(text: str, width: int, *, in_lists: bool = False) -> list[str]:
    """`text` in lines of at most `width`, broken after blanks. A longer word is broken too, but not within a number.

    With `in_lists`, also broken after commas, semicolons and dots. Not by default: a comma may be part of a number (1,597,551).
    """
    lines: list[str] = []
    line = ""
    for chunk in (_PART if in_lists else _WORD).findall(text):
        if line and cell_len(line) + cell_len(chunk.rstrip()) > width:
            lines.append(line.rstrip())
            line = ""
        rest = chunk
        while cell_len(line) + cell_len(rest.rstrip()) > width:
            cut = _cut(rest, width)
            lines.append(rest[:cut])
            rest = rest[cut:]
        line += rest
    return [*lines, line.rstrip()]


def _cut(word: str, width: int) -> int:
    """Where to break a word that is too long: after punctuation between its parts, else anywhere but within a number."""
    cut = max(1, _fitting(word, width))
    sign = max(word.rfind(sign, 0, cut) for sign in "-_/:=") + 1
    if sign > cut // 2:
        return sign
    digits = cut - len(word[:cut].rstrip("0123456789"))
    return cut - digits if word[cut].isdigit() and digits < cut else cut


def _fitting(text: str, width: int) -> int:
    """How many characters of `text` fit."""
    used = 0
    for number, character in enumerate(text):
        used += cell_len(character)
        if used > width:
            return number
    return len(text)
