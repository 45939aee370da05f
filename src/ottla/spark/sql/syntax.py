"""Checks the syntax of a statement with Spark's own grammar, before Spark runs: where it is wrong, and what was expected.

What cannot be checked (no PySpark with jars, an unknown form of its grammar, a statement that is too long) is left to Spark.
"""

from __future__ import annotations

import functools
import importlib.util
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from ottla.errors.texts import near_words
from ottla.spark.sql.errors import SqlSyntaxError
from ottla.spark.sql.grammar import ACTION, ATOM, EPSILON, PREDICATE, First, Network, NoGrammar, Recogniser, read_network

LITERALS_MAX = 8
"""A rule of more texts than this is none of keywords or signs."""
DEPTH = 20_000
"""Python's recursion limit while a statement is checked: a parenthesis is some 30 calls deep."""
PIECES_MAX = 4000
"""Tokens of a statement that is checked. So many take about half a second."""
EXPECTED_SHOWN = 6
BEFORE_BY = ("GROUP", "ORDER", "PARTITION", "SORT", "CLUSTER", "DISTRIBUTE")
DONE = sys.maxsize
"""Where a statement without an error is wrong."""
_WORD = re.compile(r"[A-Za-z_]\w*(?=[\s,()=.;]|$)", re.ASCII)
_NUMBER = re.compile(r"\d+(\.\d+)?(?=[\s,()=;]|$)", re.ASCII)
"""Words and numbers before a sign that cannot go on with them: most of a statement."""


class Wrong(NamedTuple):
    """The first place where a statement is wrong."""

    start: int
    end: int
    """Of the token; both the length of the text where it ends too early."""
    expected: list[str]
    """Keywords and signs that could stand there."""
    is_name_expected: bool = False
    """Whether a name could."""
    before: str = ""
    """The token before it."""
    meant: tuple[int, int, str] | None = None
    """The word that was probably misspelt, and how it is spelt."""


class _Piece(NamedTuple):
    type: int
    start: int
    end: int


class Grammar:
    """Spark's grammar."""

    def __init__(self, jar: Path) -> None:
        self._lexer = read_network(jar, "SqlBaseLexer")
        self._parser = read_network(jar, "SqlBaseParser")
        self._literals: dict[str, int] = {}
        self._patterns: list[int] = []
        """Rules of tokens that are not fixed texts: names, numbers, quoted texts."""
        for rule in self._lexer.entries:
            texts = _texts(self._lexer, rule)
            if texts is None:
                self._patterns.append(rule)
            else:
                for text in texts:
                    self._literals.setdefault(text, self._lexer.types[rule])
        self._longest = max(map(len, self._literals), default=0)
        self._names = {kind: text for text, kind in reversed(self._literals.items())}
        self._firsts: dict[int, First] = {}
        self._shapes: dict[str, int] = {}
        """Types of names and numbers, by an example."""
        self._identifier = self._token([ord(each) for each in "X_1"], 0)[0]

    def is_keyword(self, word: str) -> bool:
        """Whether a word is one of Spark's, which may be a name in places."""
        return word.upper() in self._literals

    def wrong(self, sql: str, names: Iterable[tuple[int, int]] = ()) -> Wrong | None:
        """What is wrong with a statement. `names` are places that count as one name, such as orders-v1."""
        pieces = self._pieces(sql, dict(names))
        tokens = [each.type for each in pieces]
        run = self._run(tokens)
        if run.furthest == DONE:
            return None
        place = run.furthest
        start, end = (pieces[place].start, pieces[place].end) if place < len(pieces) else (len(sql), len(sql))
        expected = run.expected.get(place, ())
        before = sql[pieces[place - 1].start : pieces[place - 1].end].upper() if place else ""
        is_name_expected = any(self._identifier in each for each in expected)
        return Wrong(start, end, self._expected(run, place), is_name_expected, before, self._meant(sql, pieces, run))

    def _run(self, tokens: list[int]) -> Recogniser:
        """Try a statement: `furthest` is where it is wrong, or DONE."""
        run = Recogniser(self._parser, tokens, self._firsts)
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, DEPTH))
        try:
            if len(tokens) in run.ends(0, 0):
                run.furthest = DONE
        except RecursionError:
            raise NoGrammar("the statement is nested too deeply to be checked") from None
        finally:
            sys.setrecursionlimit(limit)
        return run

    def _meant(self, sql: str, pieces: Sequence[_Piece], run: Recogniser) -> tuple[int, int, str] | None:
        """A misspelt keyword: the token that was refused, or one shortly before it that was taken for a name."""
        best: tuple[int, int, str] | None = None
        furthest = run.furthest
        for index in range(run.furthest, max(-1, run.furthest - 3), -1):
            if index >= len(pieces) or pieces[index].type != self._identifier:
                continue
            start, end = pieces[index].start, pieces[index].end
            words = [each for each in self._expected(run, index) if each.isalpha()]
            for word in near_words(sql[start:end].upper(), words, count=4, cutoff=0.7):
                tokens = [each.type for each in pieces]
                tokens[index] = self._literals[word]
                tried = self._run(tokens).furthest
                if tried > furthest:  # the statement is right with this word, or right for longer
                    best, furthest = (start, end, word), tried
        return best

    def _expected(self, run: Recogniser, place: int) -> list[str]:
        types = {kind for each in run.expected.get(place, ()) for kind in each}
        return sorted(self._names[kind] for kind in types if kind in self._names)

    def _pieces(self, sql: str, names: dict[int, int]) -> list[_Piece]:
        """The tokens of Spark's lexer. Comments and blanks are left out; hints are tokens."""
        # Keywords are upper case in the grammar; a letter whose upper case is two letters stays.
        signs = [ord(each.upper()) if len(each.upper()) == 1 else ord(each) for each in sql]
        found: list[_Piece] = []
        position = nested = 0
        while position < len(sql):
            if sql[position].isspace():
                position += 1
                continue
            if sql.startswith("--", position):
                end = sql.find("\n", position)
                position = len(sql) if end < 0 else end + 1
                continue
            if sql.startswith("/*", position) and not sql.startswith("/*+", position):
                position = _comment_end(sql, position)
                continue
            if position in names:
                found.append(_Piece(self._identifier, position, names[position]))
                position = names[position]
                continue
            if sql[position] == "$" or (sql[position] in "xX" and sql.startswith("$", position + 1)):
                raise NoGrammar("texts between dollar signs are not known here")
            kind, end = self._quick(sql, position) or self._token(signs, position)
            text = sql[position:end].upper()
            # As Spark's lexer: within ARRAY<MAP<…>> two signs end two types, else they shift bits.
            if text in ("ARRAY", "MAP", "STRUCT"):
                nested += 1
            if text[:2] == ">>" and nested:
                kind, end = self._literals[">"], position + 1
            if sql[position:end] == ">" and nested:
                nested -= 1
            found.append(_Piece(kind, position, end))
            position = end
            if len(found) > PIECES_MAX:
                raise NoGrammar("the statement is too long to be checked")
        return found

    def _quick(self, sql: str, position: int) -> tuple[int, int] | None:
        """The token at a position, if it is a plain word or number."""
        if found := _WORD.match(sql, position):
            return self._literals.get(found[0].upper(), self._identifier), found.end()
        if found := _NUMBER.match(sql, position):
            shape = "1.5" if found[1] else "1"
            if shape not in self._shapes:
                self._shapes[shape] = self._token([ord(each) for each in shape], 0)[0]
            return self._shapes[shape], found.end()
        return None

    def _token(self, signs: list[int], position: int) -> tuple[int, int]:
        """The type and end of the token at a position: the longest, of these the first in the grammar."""
        best_kind, best_end = 0, position + 1
        window = "".join(map(chr, signs[position : position + self._longest]))
        for size in range(len(window), 0, -1):
            if window[:size] in self._literals:
                best_kind, best_end = self._literals[window[:size]], position + size
                break
        if window.startswith("/*+"):  # a hint; the rule of comments leaves hints out with a predicate
            return self._literals["/*+"], position + 3
        run = Recogniser(self._lexer, signs, holds=lambda place: not _continues(signs, place))
        for rule in self._patterns:
            end = max(run.ends(rule, position), default=0)
            # Keywords come before names in the grammar, so a text that is both is a keyword.
            if end > best_end or (end == best_end and best_kind == 0):
                best_kind, best_end = self._lexer.types[rule], end
        return best_kind, best_end


def check_syntax(sql: str, names: Iterable[tuple[int, int]] = (), *, begin: tuple[int, int] = (1, 1)) -> None:
    """Raise the place and the token of a statement that Spark cannot parse. `begin` is its line and column in a larger text."""
    grammar = spark_grammar()
    if grammar is None:
        return
    try:
        wrong = grammar.wrong(sql, names)
    except NoGrammar:
        return
    if wrong is None:
        return
    start, end, hint = wrong.start, wrong.end, _hint(wrong)
    if wrong.meant is not None:
        start, end, word = wrong.meant
        hint = f"did you mean {word}?"
    shown = sql[start:end]
    what = f"{_short(shown)} is not expected here" if shown else "the statement ends too early"
    raise SqlSyntaxError(f"{place_of(sql, start, begin)}: {what}: {hint}")


def place_of(sql: str, start: int, begin: tuple[int, int] = (1, 1)) -> str:
    """Words for a place: `line 3, column 8`."""
    line = sql.count("\n", 0, start)
    column = start - (sql.rfind("\n", 0, start) + 1)
    return f"line {begin[0] + line}, column {column + (begin[1] if line == 0 else 1)}"


@functools.cache
def spark_grammar() -> Grammar | None:
    """The grammar of the installed PySpark; None if it has no jars, or a grammar of another form."""
    try:
        spec = importlib.util.find_spec("pyspark")
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is None:
        return None
    jars = sorted((Path(spec.origin).parent / "jars").glob("spark-sql-api_*.jar"))
    try:
        return Grammar(jars[-1]) if jars else None
    except NoGrammar:
        return None


def _hint(wrong: Wrong) -> str:
    if wrong.before in BEFORE_BY:
        return f"write {wrong.before} BY"
    if wrong.is_name_expected:
        return "a name or an expression must stand there"
    if 0 < len(wrong.expected) <= EXPECTED_SHOWN:
        return f"{' or '.join(wrong.expected)} must stand there"
    usual = [each for each in USUAL if each in wrong.expected][:EXPECTED_SHOWN]
    return f"{' or '.join(usual)} could stand there" if usual else "look at the words before it"


USUAL = (")", ",", "FROM", "WHERE", "GROUP", "ORDER", "LIMIT", "SELECT", "ON", "AS", "THEN", "END", "BY", "(")
"""What is named if many words could stand at a place."""


def _short(text: str) -> str:
    line = text.split("\n")[0]
    return line if len(line) <= 40 else f"{line[:40]}…"


def _texts(network: Network, rule: int) -> list[str] | None:
    """The texts of a rule of keywords or signs; None for one of endless many texts."""
    found: list[str] = []
    todo = [(network.starts[rule], "")]
    while todo:
        state, text = todo.pop()
        if network.is_stop[state]:
            found.append(text)
            if len(found) > LITERALS_MAX:
                return None
            continue
        for edge in network.edges[state]:
            if edge.kind == ATOM:
                todo.append((edge.target, text + chr(max(0, edge.reads[0][0]))))
            elif edge.kind in (EPSILON, ACTION, PREDICATE):  # actions and predicates are those of signs: < and > of types
                todo.append((edge.target, text))
            else:
                return None
            if len(todo) > LITERALS_MAX or len(text) > 40:
                return None
    return found


def _continues(signs: list[int], place: int) -> bool:
    """Whether a letter, digit or underscore follows: then `.1` in `a.1b` is no number."""
    return place < len(signs) and (chr(signs[place]).isascii() and (chr(signs[place]).isalnum() or chr(signs[place]) == "_"))


def _comment_end(sql: str, start: int) -> int:
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
    return position
