"""What the generators of documents share: tables in Markdown, and writing or checking the file."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path


def code(text: str | None) -> str:
    """`text` as code; nothing for no text."""
    return f"`{text}`" if text else ""


def table(columns: list[str], rows: Iterable[tuple[str, ...]]) -> str:
    """A table; bars in cells are escaped."""
    lines = [columns, ["---"] * len(columns), *(list(row) for row in rows)]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def write_or_check(target: Path, text: str) -> int:
    """Write `text`; with `--check` on the command line only say whether the file has it. The exit code of the generator."""
    if "--check" in sys.argv[1:]:
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            print(f"{target.name} is stale: run make generate")
            return 1
        return 0
    target.parent.mkdir(exist_ok=True)
    target.write_text(text, encoding="utf-8")
    return 0
