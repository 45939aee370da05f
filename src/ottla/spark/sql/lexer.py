"""Cuts SQL into tokens and statements. Knows quotes, comments and semicolons, and no grammar. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

from ottla.spark.sql.errors import SqlError

WORD, TEXT, NAME, NUMBER, SIGN = "word", "text", "name", "number", "sign"

_SPACE = re.compile(r"\s+")
_LINE_COMMENT = re.compile(r"--[^\n]*")
_WORD = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_QUOTES = {"'": TEXT, '"': TEXT, "`": NAME}
_OPENING, _CLOSING = {"(", "<"}, {")", ">"}


class Token(NamedTuple):
    """A piece of a statement, and where it is."""

    kind: str
    """WORD, TEXT ('…' or "…"), NAME (`…`), NUMBER or SIGN."""
    value: str
    """A text or name without its quotes; else as written."""
    start: int
    end: int

    def is_word(self, *words: str) -> bool:
        """Whether it is one of these keywords, in any case."""
        return self.kind == WORD and self.value.upper() in words

    @property
    def is_identifier(self) -> bool:
        """Whether it can be the name of something."""
        return self.kind in (WORD, NAME)


class Unfinished(SqlError):
    """The text ends within a quote or a comment."""


def tokenize(sql: str) -> list[Token]:
    """The tokens of a text, without blanks and comments."""
    found: list[Token] = []
    position = 0
    while position < len(sql):
        blank = _SPACE.match(sql, position) or _LINE_COMMENT.match(sql, position)
        if blank is not None:
            position = blank.end()
        elif sql.startswith("/*", position):
            position = _comment_end(sql, position)
        elif sql[position] in _QUOTES:
            value, end = _quoted(sql, position)
            found.append(Token(_QUOTES[sql[position]], value, position, end))
            position = end
        else:
            match, kind = _WORD.match(sql, position), WORD
            if match is None:
                match, kind = _NUMBER.match(sql, position), NUMBER
            end = position + 1 if match is None else match.end()
            found.append(Token(SIGN if match is None else kind, sql[position:end], position, end))
            position = end
    return found


class Cut(NamedTuple):
    """One statement of a longer text."""

    text: str
    """Without its semicolon, blanks and comments at its ends removed."""
    line: int
    """Where it begins, from 1 on."""
    column: int = 1
    """Where it begins in its line, from 1 on."""


def split_statements(sql: str) -> list[Cut]:
    """The statements of a text. The last one needs no semicolon."""
    return _pieces(sql)[0]


def is_complete(sql: str) -> bool:
    """Whether the text ends with a semicolon, or holds nothing at all: a shell runs it now, instead of waiting for more."""
    try:
        return not _pieces(sql)[1]
    except Unfinished:
        return False


def split_at_commas(tokens: list[Token]) -> list[list[Token]]:
    """The parts between commas that are not within parentheses or angle brackets."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        if token.kind == SIGN and token.value in _OPENING:
            depth += 1
        elif token.kind == SIGN and token.value in _CLOSING:
            depth -= 1
        if token.kind == SIGN and token.value == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return [] if parts == [[]] else parts


def _pieces(sql: str) -> tuple[list[Cut], bool]:
    """The statements, and whether the last one lacks its semicolon."""
    found: list[Cut] = []
    first: Token | None = None
    last: Token | None = None
    for token in tokenize(sql):
        if token.kind == SIGN and token.value == ";":
            if first is not None and last is not None:
                found.append(_cut(sql, first.start, last.end))
            first = last = None
            continue
        first, last = first or token, token
    if first is not None and last is not None:
        found.append(_cut(sql, first.start, last.end))
        return found, True
    return found, False


def _cut(sql: str, start: int, end: int) -> Cut:
    return Cut(sql[start:end], sql.count("\n", 0, start) + 1, start - sql.rfind("\n", 0, start))


def _quoted(sql: str, start: int) -> tuple[str, int]:
    r"""A quoted text's value and end. A quote is doubled or, but in names, escaped with a backslash, as in Spark SQL."""
    quote, position, made = sql[start], start + 1, []
    while position < len(sql):
        sign = sql[position]
        if sign == "\\" and quote != "`" and position + 1 < len(sql):
            made.append(sql[position + 1] if sql[position + 1] in "'\"\\" else sql[position : position + 2])
            position += 2
        elif sign != quote:
            made.append(sign)
            position += 1
        elif sql.startswith(quote, position + 1):
            made.append(quote)
            position += 2
        else:
            return "".join(made), position + 1
    line = sql.count("\n", 0, start) + 1
    raise Unfinished(f"the quote {quote} in line {line} has no end: close it with another {quote}")


def _comment_end(sql: str, start: int) -> int:
    """Where a comment ends that begins with `/*`; such comments nest, as in Spark SQL."""
    depth, position = 0, start
    while position < len(sql):
        if sql.startswith("/*", position):
            depth, position = depth + 1, position + 2
        elif sql.startswith("*/", position):
            depth, position = depth - 1, position + 2
            if depth == 0:
                return position
        else:
            position += 1
    raise Unfinished(f"the comment in line {sql.count(chr(10), 0, start) + 1} has no end: close it with */")
