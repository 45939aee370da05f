"""The rules of ssl.principal.mapping.rules: from the subject of a certificate to the name of a principal. Pure.

A comma-separated list of `DEFAULT` (the subject as it is) and `RULE:pattern/replacement/`, with `L` or `U` at the end for lower
or upper case. A slash inside is written `\\/`. The first rule whose pattern matches the whole subject decides. `$1` in the
replacement is a group of the pattern; a group that the pattern does not have stays as it is written.

Patterns are regular expressions of Java. What both languages have is the same in Python, but for the spelling of named groups.
"""

from __future__ import annotations

import re
from functools import partial
from typing import NamedTuple, Self

_DEFAULT = "DEFAULT"
_PART = r"((?:\\.|[^\\/])*)"
_RULE = rf"\s*(?:(DEFAULT)|RULE:{_PART}/{_PART}/([LU]?)|())\s*(?:[,\n]|$)"
_REFERENCE = r"\\(.)|\$(?:([0-9]+)|\{([A-Za-z][A-Za-z0-9]*)\})"


class _Rule(NamedTuple):
    pattern: re.Pattern[str]
    replacement: str
    case: str
    """`L`, `U` or empty."""

    def apply(self, subject: str) -> str | None:
        if self.pattern.fullmatch(subject) is None:
            return None
        # Every match is replaced, so also an empty one at the end, as Java does it: `(.*)` to `$1x` gives an x more.
        name = self.pattern.sub(partial(_expand, self.replacement), subject)
        return name.lower() if self.case == "L" else name.upper() if self.case == "U" else name


class PrincipalRules:
    """Parsed rules."""

    __slots__ = ("_rules", "text")

    def __init__(self, text: str = _DEFAULT, rules: tuple[_Rule | None, ...] = (None,)) -> None:
        """`None` among the rules is DEFAULT."""
        self.text = text
        self._rules = rules

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises `ValueError` with a text that goes after "the rules cannot be used: "."""
        rule = re.compile(_RULE, re.DOTALL)
        rules: list[_Rule | None] = []
        position = 0
        while position < len(text):
            match = rule.match(text, position)
            if match is None:
                raise ValueError(
                    f"{text[position:].strip()!r} is no rule: write DEFAULT or RULE:pattern/replacement/, with L or U behind "
                    "it for lower or upper case"
                )
            position = match.end()
            if match[1]:
                rules.append(None)
            elif match[2] is not None:
                rules.append(_rule(*match.group(2, 3, 4)))
        return cls(text, tuple(rules))

    def name(self, subject: str) -> str | None:
        """The principal's name for the subject of a certificate; None if no rule matches."""
        for rule in self._rules:
            name = subject if rule is None else rule.apply(subject)
            if name is not None:
                return name
        return None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PrincipalRules) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"PrincipalRules({self.text!r})"


def _rule(pattern: str, replacement: str, case: str) -> _Rule:
    try:
        compiled = re.compile(re.sub(r"(?<!\\)\(\?<(?![=!])", "(?P<", pattern))
    except re.error as error:
        raise ValueError(f"the pattern {pattern!r} is no regular expression that Python reads: {error}") from None
    # What follows fails in Java too, with the first certificate.
    for found in re.finditer(r"\\.|\$(?:([0-9]+)|\{(\w+)\})?", replacement, re.DOTALL):
        digits, named = found.groups()
        is_wrong = digits is None and found[0] == "$"
        is_wrong |= digits is not None and not compiled.groups and int(digits[:1]) > 0
        if is_wrong or (named is not None and named not in compiled.groupindex):
            raise ValueError(
                f"the replacement {replacement!r} has {found[0]}, and the pattern {pattern!r} has no such group: write \\$ for "
                "the sign itself"
            )
    return _Rule(compiled, replacement, case)


def _expand(replacement: str, match: re.Match[str]) -> str:
    """`replacement` with the groups of `match`."""
    count = match.re.groups

    def group(reference: re.Match[str]) -> str:
        escaped, digits, named = reference.groups()
        if escaped is not None:
            return escaped
        if named is not None:
            return match[named] or ""
        # Java reads as many digits as there are groups: with three groups, $12 is the first one and a 2.
        used = len(digits)
        while used > 1 and int(digits[:used]) > count:
            used -= 1
        number = int(digits[:used])
        return reference[0] if number > count else (match[number] or "") + digits[used:]

    return re.sub(_REFERENCE, group, replacement, flags=re.DOTALL)
