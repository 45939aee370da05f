"""How the fields of forms and queries are read. A mistake is a page that says what to write instead."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime

from ottla.config.values import parse_duration_ms
from ottla.console.app import Refused, Visit

LINES_MAX = 100_000


def whole_number(given: str, name: str, least: int = 0) -> int:
    """A whole number."""
    text = given.strip()
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 18 or int(text) < least:
        raise Refused(400, f"{name} must be a whole number of at least {least}, not {given!r}")
    return int(text)


def moment_ms(given: str) -> int:
    """Milliseconds since 1970: given so, as ISO 8601 (UTC without a zone), or as a duration before now such as `30m`."""
    text = given.strip()
    if text.isascii() and text.isdigit() and len(text) < 16:
        return int(text)
    if (duration_ms := parse_duration_ms(text)) is not None:
        return max(0, int(time.time() * 1000) - duration_ms)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Refused(400, f"{given!r} is no time: write 2026-01-31T12:00, 30m, or milliseconds since 1970") from None
    return max(0, int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000))


def pairs(text: str, what: str) -> dict[str, str]:
    """Lines of `name=value`."""
    found = {}
    for line in filter(None, map(str.strip, text.splitlines()[:LINES_MAX])):
        name, equals, value = line.partition("=")
        if not equals or not name.strip():
            raise Refused(400, f"{line!r} is no {what}: write name=value, one a line")
        found[name.strip()] = value.strip()
    return found


def topics_of(texts: list[str]) -> dict[str, list[int] | None]:
    """`orders` and `orders:0,1`, one each or one a line: partitions by topic, None for all partitions."""
    found: dict[str, list[int] | None] = {}
    for text in (line.strip() for each in texts for line in each.splitlines()):
        topic, colon, numbers = text.partition(":")
        if not topic:
            continue
        if not colon:
            found[topic] = None
        elif found.get(topic, []) is not None:
            found[topic] = [*(found.get(topic) or []), *(whole_number(each, "a partition") for each in numbers.split(","))]
    return found


def many(visit: Visit, name: str) -> list[str]:
    """All values of a field that may be there more than once."""
    if visit.fields:
        return [value for key, value in visit.fields if key == name]
    return visit.request.query_params.getlist(name)


def needed(form: Mapping[str, str], name: str, what: str) -> str:
    """A field that must not be empty."""
    value = form.get(name, "").strip()
    if not value:
        raise Refused(400, f"nothing was changed: {what} is missing")
    return value


def confirmed(visit: Visit, name: str, what: str) -> None:
    """The name of what is deleted was typed as well."""
    if visit.form.get("confirm", "").strip() != name:
        raise Refused(400, f"nothing was changed: type {what}, {name}, to confirm")
