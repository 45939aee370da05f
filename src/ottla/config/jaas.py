"""Reads JAAS texts as Kafka does: `MODULE required name="value" other="value";`. Clients and listeners have them.

A text has one login module, a control flag and options. Words are letters, digits and `._-$`, and do not begin like a number;
everything else needs quotes, " or '. A backslash in quotes escapes a letter (`\\n`), an octal number (`\\101`) or stands for
the character after it. Comments are `// …` and `/* … */`. Errors never show values: they may be passwords.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from ottla.config.values import InvalidConfig

SETTING = "sasl.jaas.config"

_CONTROL_FLAGS = ("required", "requisite", "sufficient", "optional")
_EXAMPLE = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="NAME" password="PASSWORD";'
_SKIPPED = re.compile(r"(?:[\0-\x20]+|/\*.*?\*/|/(?!\*)[^\r\n]*)*", re.DOTALL)
_TOKEN = re.compile(
    r"""(?P<quote>["'])(?P<quoted>(?:(?!(?P=quote))[^\\]|\\.)*)(?P=quote)|(?P<sign>[=;])"""
    r"|(?P<word>[A-Za-z_$\xa0-\U0010ffff][A-Za-z0-9._$\xa0-\U0010ffff-]*)",
    re.DOTALL,
)
_ESCAPED = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "a": "\a"}


class JaasEntry(NamedTuple):
    """A login module and its options."""

    module: str
    options: Mapping[str, str]

    @property
    def short_name(self) -> str:
        """The class without its package: PlainLoginModule."""
        return self.module.rpartition(".")[2]

    def __repr__(self) -> str:
        return f"JaasEntry({self.module}, options {', '.join(self.options)})"


def parse_jaas(text: str, setting: str = SETTING, advice: str = f"Write {_EXAMPLE}") -> JaasEntry:
    """The one entry of `text`. Raises `InvalidConfig`, which names `setting` and ends with `advice`."""
    try:
        return _parsed(_tokens(text))
    except ValueError as broken:
        raise InvalidConfig(setting, f"{setting} cannot be read: {broken}. {advice}") from None


def _parsed(tokens: list[tuple[bool, str]]) -> JaasEntry:
    if len(tokens) < 3 or tokens[-1] != (True, ";"):
        raise ValueError("it must end with a semicolon")
    (_, module), (_, flag), *rest = tokens[:-1]
    if flag.lower() not in _CONTROL_FLAGS:
        raise ValueError("the word `required` must follow the name of the login module")
    if (True, ";") in rest:
        raise ValueError("it must have one login module only")
    options: dict[str, str] = {}
    if len(rest) % 3:
        raise ValueError('options must be key="value" pairs')
    for (is_key_sign, key), equals, (is_sign, value) in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        if is_key_sign or equals != (True, "=") or is_sign:
            raise ValueError('options must be key="value" pairs')
        options[key] = value
    return JaasEntry(module, options)


def _tokens(text: str) -> list[tuple[bool, str]]:
    """(is = or ;, text) of every token."""
    tokens = []
    position = _end_of_skipped(text, 0)
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            if text[position] in "\"'":
                raise ValueError("a quote is not closed")
            if text.startswith("/*", position):
                raise ValueError("a comment is not closed")
            raise ValueError("a value that is not a word, such as a number, must be in quotes")
        if (quoted := match["quoted"]) is not None:
            tokens.append((False, _ESCAPED.sub(_unescaped, quoted)))
        else:
            tokens.append((match["sign"] is not None, match["sign"] or match["word"]))
        position = _end_of_skipped(text, match.end())
    return tokens


def _end_of_skipped(text: str, position: int) -> int:
    found = _SKIPPED.match(text, position)
    assert found is not None, "it matches the empty text, too"
    return found.end()


def _unescaped(found: re.Match[str]) -> str:
    escaped = found[1]
    return chr(int(escaped, 8)) if escaped[0] in "01234567" else _ESCAPES.get(escaped, escaped)
