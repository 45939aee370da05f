"""Masking: fields of records that nobody sees on pages, in downloads, in search results or over the API.

A rule names topics by a glob, a part (`key`, `value` or `headers`), a path in JSON (`$.customer.email`, `$.items[*].price`,
`$..card`; `$` is all of it) and how to mask. Rules apply after bytes are read and before anything else looks at them: a search
finds nothing by what it may not show. Content that a rule is for but that has no fields (text, numbers, JSON that is broken) is
hidden whole.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple

from ottla.errors import ArgumentError
from ottla.records.kernels import Record

HIDDEN: Final = "•••"
HASH_CHARACTERS: Final = 12
LAST: Final = 4
DEPTH_MAX: Final = 200
PARTS: Final = ("key", "value", "headers")


class How(StrEnum):
    """What takes the place of a value."""

    HIDE = "hide"
    """Three dots."""
    HASH = "hash"
    """A hash with the console's secret: equal values stay equal, and cannot be guessed by hashing."""
    LAST = "last"
    """The last four characters, if there are many more."""
    REMOVE = "remove"
    """Nothing: the field is gone."""


class Rule(NamedTuple):
    """One rule, as it is written."""

    topics: str = "*"
    part: str = "value"
    path: str = "$"
    how: How = How.HIDE


Step = str | int | None
"""A field, an index, None for all of a list or object."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A path: its steps. `..name` is a step that looks everywhere below."""

    steps: tuple[tuple[bool, Step], ...]


_STEP = re.compile(r"(\.\.)?(?:\.?([^.\[\]\s*]+)|\.?(\*)|\[(\d+)\]|\[(\*)\]|\['([^']*)'\]|\[\"([^\"]*)\"\])")


def parse_path(text: str) -> _Place:
    """`$.a.b`, `$['a b']`, `$.list[0]`, `$.list[*]`, `$..name`. Raises `ArgumentError`."""
    rest = text.strip()
    if not rest.startswith("$"):
        raise ArgumentError(f"{text!r} is no path: it begins with $, such as $.customer.email")
    at, steps = 1, []
    while at < len(rest):
        found = _STEP.match(rest, at)
        if found is None:
            raise ArgumentError(f"{text!r} is no path: it cannot be read from {rest[at:]!r} on")
        deep, name, star, index, all_of, single, double = found.groups()
        step: Step = (
            int(index)
            if index is not None
            else None
            if star or all_of
            else next(each for each in (name, single, double) if each is not None)
        )
        steps.append((deep is not None, step))
        at = found.end()
    return _Place(tuple(steps))


class Masking:
    """The rules of a console."""

    def __init__(self, rules: Sequence[Rule] = (), secret: bytes = b"") -> None:
        self._secret = secret
        self._rules = [(each, parse_path(each.path)) for each in rules]
        for each in rules:
            if each.part not in PARTS:
                raise ArgumentError(f"{each.part!r} is no part of a record: write {', '.join(PARTS)}")

    def __bool__(self) -> bool:
        return bool(self._rules)

    def concerns(self, topic: str, part: str) -> bool:
        """Whether something of this part is masked."""
        return any(rule.part == part and fnmatchcase(topic, rule.topics) for rule, _ in self._rules)

    def masked(self, topic: str, part: str, content: Any, *, is_parsed: bool) -> Any:
        """The one function: what to show in place of `content`.

        `content` is text, or a value as JSON has it (`is_parsed`). It is not changed; what is returned may share parts with it.
        """
        rules = [(rule, place) for rule, place in self._rules if rule.part == part and fnmatchcase(topic, rule.topics)]
        if not rules or content is None:
            return content
        if not is_parsed:
            parsed = _parsed(content)
            if isinstance(parsed, dict | list):
                return json.dumps(self._apply(rules, parsed), ensure_ascii=False)
            return self._replaced(content, rules[0][0].how)
        if not isinstance(content, dict | list):
            return self._replaced(content, rules[0][0].how)
        return self._apply(rules, content)

    def headers(self, topic: str, headers: Sequence[tuple[str, bytes | None]]) -> list[tuple[str, bytes | None]]:
        """A record's headers; a path names one: `$.authorization`."""
        rules = [(rule, place) for rule, place in self._rules if rule.part == "headers" and fnmatchcase(topic, rule.topics)]
        if not rules:
            return list(headers)
        found: list[tuple[str, bytes | None]] = []
        for name, value in headers:
            how = next((rule.how for rule, place in rules if _names(place, name)), None)
            if how is None:
                found.append((name, value))
            elif how is not How.REMOVE:
                text = None if value is None else value.decode("utf-8", "replace")
                found.append((name, None if text is None else str(self._replaced(text, how)).encode()))
        return found

    def _apply(self, rules: Sequence[tuple[Rule, _Place]], content: Any) -> Any:
        for rule, place in rules:
            if not place.steps:
                return self._replaced(content, rule.how)
            content = self._walk(content, place.steps, rule.how, DEPTH_MAX)
        return content

    def _walk(self, value: Any, steps: tuple[tuple[bool, Step], ...], how: How, depth: int) -> Any:
        """`value` with what the steps lead to replaced. Too deep to look at: hidden."""
        if not isinstance(value, dict | list):
            return value
        if depth == 0:
            return HIDDEN
        (is_deep, step), rest = steps[0], steps[1:]
        found: Any
        if isinstance(value, dict):
            found = {}
            for name, each in value.items():
                if step is None or step == name:
                    if not rest and how is How.REMOVE:
                        continue
                    replaced = self._walk(each, rest, how, depth - 1) if rest else self._replaced(each, how)
                else:
                    replaced = each
                # `..` looks below as well, also into what has matched.
                found[name] = self._walk(replaced, steps, how, depth - 1) if is_deep else replaced
            return found
        found = []
        for index, each in enumerate(value):
            if step is None or step == index:
                if not rest and how is How.REMOVE:
                    continue
                replaced = self._walk(each, rest, how, depth - 1) if rest else self._replaced(each, how)
            else:
                replaced = each
            found.append(self._walk(replaced, steps, how, depth - 1) if is_deep else replaced)
        return found

    def _replaced(self, value: Any, how: How) -> Any:
        if value is None:
            return None
        if how is How.HIDE or how is How.REMOVE:
            return HIDDEN
        text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, default=str)
        if how is How.LAST:
            return HIDDEN + text[-LAST:] if len(text) >= 2 * LAST else HIDDEN
        return hashlib.blake2b(text.encode(), key=self._secret[:64], digest_size=16).hexdigest()[:HASH_CHARACTERS]


class Mask:
    """The rules for one topic: takes records, gives records without what nobody may see.

    What has fields becomes JSON, whatever it was: nothing behind this sees the bytes that were stored.
    """

    def __init__(self, masking: Masking, topic: str, read: Read) -> None:
        self._masking = masking
        self._topic = topic
        self._read = read

    def masked(self, each: Record) -> Record:
        """The record to show. Reads its schema: call it in a worker thread."""
        key = each.key if each.key is None else self._part(each, "key", each.key)
        value = each.value if each.value is None else self._part(each, "value", each.value)
        headers = self._masking.headers(self._topic, list(each.headers))
        return Record(each.offset, each.timestamp, key, value, tuple(headers))

    def _part(self, each: Record, part: str, data: bytes) -> bytes:
        if not self._masking.concerns(self._topic, part):
            return data
        content, is_parsed = self._read(self._topic, each, part)
        found = self._masking.masked(self._topic, part, content, is_parsed=is_parsed)
        text = found if isinstance(found, str) and not is_parsed else json.dumps(found, ensure_ascii=False, default=str)
        return text.encode("utf-8", "replace")


Read = Callable[[str, Any, str], tuple[Any, bool]]
"""Reads the key or value of a topic's record: text, or (with True) a value as JSON has it."""

_current: ContextVar[tuple[Masking, Read] | None] = ContextVar("masking", default=None)


def begin(masking: Masking, read: Read) -> None:
    """From here on, `mask_of` in this task and those that it starts gives masks by these rules."""
    _current.set((masking, read) if masking else None)


def mask_of(topic: str) -> Mask | None:
    """The mask for a topic's records in this request; None if nothing of it is masked."""
    found = _current.get()
    if found is None or not any(found[0].concerns(topic, part) for part in PARTS):
        return None
    return Mask(found[0], topic, found[1])


def _names(place: _Place, name: str) -> bool:
    return not place.steps or place.steps[0][1] in (None, name)


def _parsed(content: Any) -> Any:
    try:
        return json.loads(content)
    except (ValueError, TypeError, RecursionError):
        return None


def rule_of(given: Mapping[str, str]) -> Rule:
    """A rule as a configuration file has it. Raises `ArgumentError`."""
    how = given.get("how", How.HIDE)
    if how not in tuple(How):
        raise ArgumentError(f"how: {how!r} is no way to mask: write {', '.join(How)}")
    rule = Rule(given.get("topics", "*"), given.get("part", "value"), given.get("path", "$"), How(how))
    Masking([rule])
    return rule
