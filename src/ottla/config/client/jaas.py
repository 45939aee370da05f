"""Reads `sasl.jaas.config` as people paste it: `MODULE required username="…" password="…";`.

Values may be bare words, or quoted by " or ' with backslash escapes. Errors never show values: they may be passwords.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from ottla.config.values import InvalidConfig

SETTING = "sasl.jaas.config"

_CONTROL_FLAGS = ("required", "requisite", "sufficient", "optional")
_TOKEN = re.compile(r"""\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([=;])|([^\s=;"']+))""", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


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


def parse_jaas(text: str) -> JaasEntry:
    """The one entry of `text`. Raises `InvalidConfig` if it is not what Kafka would read."""
    tokens = _tokens(text)
    if len(tokens) < 3 or tokens[-1] != (True, ";"):
        raise _broken("it must end with a semicolon")
    (_, module), (_, flag), *rest = tokens[:-1]
    if flag.lower() not in _CONTROL_FLAGS:
        raise _broken("the word `required` must follow the name of the login module")
    if (True, ";") in rest:
        raise _broken("it must have one login module only")
    options: dict[str, str] = {}
    if len(rest) % 3:
        raise _broken('options must be key="value" pairs')
    for (_, key), equals, (is_sign, value) in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        if equals != (True, "=") or is_sign:
            raise _broken('options must be key="value" pairs')
        options[key] = value
    return JaasEntry(module, options)


def _tokens(text: str) -> list[tuple[bool, str]]:
    """(is = or ;, text) of every token."""
    tokens = []
    text = text.strip()
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _broken("a quote is not closed")
        quoted = match[1] if match[1] is not None else match[2]
        if quoted is not None:
            tokens.append((False, re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), quoted, flags=re.DOTALL)))
        else:
            tokens.append((match[3] is not None, match[3] or match[4]))
        position = match.end()
    return tokens


def _broken(problem: str) -> InvalidConfig:
    example = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="NAME" password="PASSWORD";'
    return InvalidConfig(
        SETTING,
        f"{SETTING} cannot be read: {problem}. Write {example} or give the keywords sasl_plain_username and "
        "sasl_plain_password",
    )
