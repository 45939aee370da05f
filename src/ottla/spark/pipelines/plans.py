"""What a query reads, from the text of its analysed plan: tables and views by name, and sources with their options.

Pure: text in, values out. The text is what `DataFrame.explain("extended")` prints; only `describe` and `validate` use it.
"""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from typing import Any

_SECTION = re.compile(r"== Analyzed Logical Plan ==\n(.*?)(?:\n== |\Z)", re.DOTALL)
_ALIAS = re.compile(r"[\s:+|-]*[~']?SubqueryAlias (\S+)$")
_NODE = re.compile(r"[\s:|]*[+:]- ")
_STREAM = re.compile(r"StreamingRelationV2 [^,]+, ([\w.]+), [^,]+, \[(.*?)\], \[")


@dataclass(frozen=True)
class Reads:
    """What a query reads."""

    names: tuple[str, ...] = ()
    """Tables and views, the nearest ones only: not what those read themselves."""
    sources: tuple[tuple[str, dict[str, str]], ...] = ()
    """Streaming sources that the query itself loads: format and options."""


@dataclass
class _Found:
    names: list[str] = field(default_factory=list)
    sources: list[tuple[str, dict[str, str]]] = field(default_factory=list)


def explain_text(frame: Any) -> str:
    """The plans of a DataFrame as text."""
    text = io.StringIO()
    with redirect_stdout(text):
        frame.explain(extended=True)
    return text.getvalue()


def reads_of(text: str, known: set[str]) -> Reads:
    """What the analysed plan in `text` reads. `known` are the pipeline's own tables and views."""
    section = _SECTION.search(text)
    found = _Found()
    skip_deeper_than: int | None = None
    is_root_seen = False
    for line in (section[1] if section else text).splitlines():
        if is_root_seen and _NODE.match(line) is None:
            continue  # a line break in a literal
        is_root_seen = is_root_seen or _NODE.match(line) is not None
        depth = len(line) - len(line.lstrip(" :+|-"))
        if skip_deeper_than is not None and depth > skip_deeper_than:
            continue
        skip_deeper_than = None
        alias = _ALIAS.match(line)
        if alias is not None:
            name = alias[1].removeprefix("spark_catalog.").removeprefix("default.")
            if name in known:
                found.names.append(name)
                skip_deeper_than = depth
            continue
        stream = _STREAM.search(line)
        if stream is not None:
            found.sources.append((stream[1], _options(stream[2])))
    return Reads(tuple(dict.fromkeys(found.names)), tuple(found.sources))


def _options(text: str) -> dict[str, str]:
    """`a=1, b=2` as a mapping. A value may contain commas: only a word with = after it begins the next option."""
    parts = re.split(r", (?=[\w.]+=)", text)
    return {key: value for key, _, value in (part.partition("=") for part in parts) if key}
