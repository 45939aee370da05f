"""Finds in a query what it reads: the names after FROM and JOIN, and the metadata columns it mentions. Pure.

Spark's parser is not at hand before Spark runs, and does not know which names are topics. So this looks only at the places
where the name of a table can be. It may find a name too many, never a function's argument; Spark has the last word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from ottla.spark.sql.declarations import METADATA
from ottla.spark.sql.lexer import NAME, NUMBER, SIGN, WORD, Token, tokenize

_ENDS = frozenset(
    {
        "WHERE",
        "GROUP",
        "ORDER",
        "HAVING",
        "LIMIT",
        "UNION",
        "EXCEPT",
        "INTERSECT",
        "MINUS",
        "ON",
        "USING",
        "WINDOW",
        "LATERAL",
        "SORT",
        "CLUSTER",
        "DISTRIBUTE",
        "QUALIFY",
        "OFFSET",
        "SELECT",
        "PIVOT",
        "UNPIVOT",
        "TABLESAMPLE",
    }
)
"""Words after which a comma does not lead to another table."""
_FUNCTIONS_WITH_FROM = frozenset({"EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "OVERLAY", "POSITION"})


@dataclass(frozen=True)
class Reference:
    """A name at a place where a table is expected."""

    name: str
    """As written, without quotes: `orders`, or `orders-v1` without them."""
    start: int
    end: int
    is_quoted: bool
    has_parts: bool
    """Whether it has dots outside of quotes: it may be a table of a database of Spark's."""


@dataclass(frozen=True)
class References:
    """What a query reads."""

    tables: list[Reference] = field(default_factory=list)
    metadata: frozenset[str] = frozenset()
    """The metadata columns that it mentions."""

    @property
    def names(self) -> list[str]:
        """The names, each once."""
        return list(dict.fromkeys(each.name for each in self.tables))


def find_references(sql: str) -> References:
    """What a query reads. Names that a WITH clause of its own defines are left out."""
    tokens = tokenize(sql)
    own = _common_tables(tokens)
    found: list[Reference] = []
    stack: list[bool] = []
    """For each open parenthesis, whether a comma in the query around it leads to another table."""
    in_from = False
    for index, token in enumerate(tokens):
        if token.kind == SIGN and token.value == "(":
            stack.append(in_from)
            in_from = False
        elif token.kind == SIGN and token.value == ")":
            in_from = stack.pop() if stack else False
        elif token.kind == WORD and token.value.upper() in _ENDS:
            in_from = False
        elif token.is_word("FROM") and _is_in_function(tokens, index):
            continue
        if token.is_word("FROM", "JOIN") or (in_from and token.kind == SIGN and token.value == ","):
            in_from = True
            reference = _name_after(sql, tokens, index + 1)
            if reference is not None and reference.name.lower() not in own:
                found.append(reference)
    words = {token.value.lower() for token in tokens if token.is_identifier}
    return References(found, frozenset(words & METADATA.keys()))


def quote_names(sql: str, references: Iterable[Reference], should_quote: Callable[[str], bool]) -> str:
    """The query with backticks around the names that need them, such as orders-v1."""
    for each in sorted(references, key=lambda one: one.start, reverse=True):
        if not each.is_quoted and not each.name.isidentifier() and should_quote(each.name):
            sql = f"{sql[: each.start]}`{each.name}`{sql[each.end :]}"
    return sql


def _name_after(sql: str, tokens: list[Token], index: int) -> Reference | None:
    if index >= len(tokens) or not tokens[index].is_identifier or tokens[index].is_word("LATERAL", "VALUES", "SELECT"):
        return None
    if tokens[index].is_word("STREAM") and index + 1 < len(tokens) and tokens[index + 1].is_identifier:
        index += 1  # Spark's FROM STREAM orders
    first, last = tokens[index], index
    while last + 1 < len(tokens) and tokens[last + 1].start == tokens[last].end:
        following = tokens[last + 1]
        if following.kind not in (WORD, NAME, NUMBER) and not (following.kind == SIGN and following.value in "-."):
            break
        last += 1
    if last + 1 < len(tokens) and tokens[last + 1].kind == SIGN and tokens[last + 1].value == "(":
        return None  # a function, such as range(10)
    pieces = tokens[index : last + 1]
    if len(pieces) == 1:
        return Reference(first.value, first.start, first.end, first.kind == NAME, False)
    is_quoted = any(each.kind == NAME for each in pieces)
    return Reference(
        sql[first.start : pieces[-1].end], first.start, pieces[-1].end, is_quoted, any(each.value == "." for each in pieces)
    )


def _common_tables(tokens: list[Token]) -> set[str]:
    """The names that WITH name [(columns)] AS ( … ), name AS ( … ) defines."""
    if not any(token.is_word("WITH") for token in tokens):
        return set()
    found = set()
    for index, token in enumerate(tokens[:-1]):
        if token.is_identifier and index and (tokens[index - 1].is_word("WITH", "RECURSIVE") or tokens[index - 1].value == ","):
            after = index + 1
            if tokens[after].value == "(":
                while after < len(tokens) and tokens[after].value != ")":
                    after += 1
                after += 1
            if after + 1 < len(tokens) and tokens[after].is_word("AS") and tokens[after + 1].value == "(":
                found.add(token.value.lower())
    return found


def _is_in_function(tokens: list[Token], index: int) -> bool:
    """Whether a FROM is that of extract(year FROM time), of IS DISTINCT FROM and the like."""
    if index and tokens[index - 1].is_word("DISTINCT"):
        return True
    depth = 0
    for position in range(index - 1, -1, -1):
        token = tokens[position]
        if token.kind == SIGN and token.value == ")":
            depth += 1
        elif token.kind == SIGN and token.value == "(":
            if depth == 0:
                return position > 0 and tokens[position - 1].value.upper() in _FUNCTIONS_WITH_FROM
            depth -= 1
    return False
