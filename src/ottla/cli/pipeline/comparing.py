"""Compares expected with actual records or rows, in any order, and shows what is missing and what is too much. Pure."""

from __future__ import annotations

import difflib
import json
from typing import Any

SHOWN_MAX = 10


def compare(name: str, expected: list[dict[str, Any]], actual: list[dict[str, Any]]) -> list[str]:
    """Lines of a diff; none if every expected item is there once, and no other. Each is compared in the fields it names."""
    rest = list(actual)
    missing = []
    for want in expected:
        found = next((each for each in rest if _matches(want, each)), None)
        if found is None:
            missing.append(want)
        else:
            rest.remove(found)
    if not missing and not rest:
        return []
    fields = {field for each in expected for field in each}
    lines = [f"{name}: {len(expected)} expected, {len(actual)} found"]
    for want in missing[:SHOWN_MAX]:
        near = _nearest(want, rest, fields)
        lines.append(f"  - {_text(want, fields)}")
        if near is not None:
            lines.append(f"  + {_text(near, fields)}")
            rest.remove(near)
    lines += [f"  + {_text(each, fields)}" for each in rest[:SHOWN_MAX]]
    left_out = max(0, len(missing) - SHOWN_MAX) + max(0, len(rest) - SHOWN_MAX)
    return lines + ([f"  … and {left_out} more"] if left_out else [])


def _matches(want: dict[str, Any], found: dict[str, Any]) -> bool:
    return all(field in found and found[field] == value for field, value in want.items())


def _nearest(want: dict[str, Any], rest: list[dict[str, Any]], fields: set[str]) -> dict[str, Any] | None:
    """The one that was probably meant, to be shown below it."""
    texts = {_text(each, fields): each for each in rest}
    near = difflib.get_close_matches(_text(want, fields), texts, 1, cutoff=0.6)
    return texts[near[0]] if near else None


def _text(item: dict[str, Any], fields: set[str]) -> str:
    return json.dumps({key: value for key, value in item.items() if key in fields or not fields}, ensure_ascii=False)
