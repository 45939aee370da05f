"""Checks statements before Spark starts: every name they read or write, against declarations and topics. Pure.

What a query reads are the names after FROM and JOIN. Spark's parser is not at hand before Spark runs, and does not know which
names are topics. So `find_references` looks only at the places where the name of a table can be. It may find a name too many,
never a function's argument; Spark has the last word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ottla.errors.texts import near_words
from ottla.spark.sql.catalog import Catalog
from ottla.spark.sql.declarations import METADATA, Declaration, declaration_of, partitions_wanted, undeclared
from ottla.spark.sql.dialects import put_window
from ottla.spark.sql.errors import PlacedSqlError, SqlError, analysis_sentence, fragment_of
from ottla.spark.sql.lexer import NAME, NUMBER, SIGN, TEXT, WORD, Cut, Token, tokenize
from ottla.spark.sql.parser import parse
from ottla.spark.sql.settings import Settings
from ottla.spark.sql.statements import Create, Drop, Insert, Passed, Print, Query, Select, Set, Statement, Unset, Window
from ottla.spark.sql.syntax import Grammar, check_syntax, place_of, spark_grammar

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


Topics = Callable[[], Collection[str]]
NAMES_SHOWN = 8
TO_PIPELINE = "`ottla pipeline` runs a query that must go on after this process"
CREATE_AS_IN_SHELL = f"CREATE STREAM … AS SELECT runs only in the shell; {TO_PIPELINE}"
INSERT_IN_SHELL = f"a continuous INSERT runs only in the shell: leave EMIT CHANGES out; {TO_PIPELINE}"
NOT_SIMPLE = ("WITH", "JOIN", "LATERAL", "PIVOT", "UNPIVOT", "WINDOW", "EXTRACT", "MATCH_RECOGNIZE")


@dataclass(frozen=True)
class Resolved:
    """A query for Spark, and the declarations of the names it reads."""

    sql: str
    sources: dict[str, Declaration]
    """By the name of the view that the query expects."""
    references: References


def resolve(
    sql: str, catalog: Catalog, topics: Topics, is_view: Callable[[str], bool], window: Window | None = None
) -> Resolved:
    """The declarations of what a query reads. `is_view` tells whether Spark itself knows a name."""
    if window is not None:
        sql = put_window(sql, window, _time_column(sql, catalog))
    references = find_references(sql)
    sources: dict[str, Declaration] = {}
    for each in references.tables:
        declared = catalog.find(each.name)
        if declared is not None:
            check_topic(declared, None, topics(), is_remembered=True)
            sources[each.name] = declared
        elif not is_view(each.name):
            there = topics()
            if each.name in there:
                sources[each.name] = undeclared(each.name)
            elif not each.has_parts:  # else it may be a table of another catalog, or a file: parquet.`orders`
                raise SqlError(unknown(each.name, catalog, there))
    return Resolved(quote_names(sql, references.tables, lambda name: name in sources), sources, references)


def _time_column(sql: str, catalog: Catalog) -> str:
    """The column with the time of events: that of the stream's watermark, else the record's own."""
    for name in find_references(sql).names:
        if (declared := catalog.find(name)) is not None and declared.timestamp is not None:
            return f"`{declared.timestamp}`"
    return "_timestamp"


def unknown(name: str, catalog: Catalog, topics: Collection[str]) -> str:
    """A sentence for a name that nothing has, with the nearest one."""
    declared = [each.name for each in catalog]
    shown = sorted(each for each in topics if not each.startswith("__"))
    near = near_words(name, [*declared, *shown])
    if near:
        return f"there is no stream, table or topic {name}: did you mean {near[0]}?"
    names = [*declared, *(each for each in shown if each not in declared)]
    if not names:
        return f"there is no stream, table or topic {name}: the cluster has no topic yet"
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return f"there is no stream, table or topic {name}: there is {', '.join(names[:NAMES_SHOWN])}{more}"


def check_topic(
    declaration: Declaration, partitions: int | None, topics: Collection[str], *, is_remembered: bool = False
) -> bool:
    """Whether the topic of a declaration must be made; raises if it is not there and may not be made."""
    if declaration.topic in topics:
        return False
    if partitions is not None:
        return True
    if is_remembered:
        raise SqlError(
            f"the {declaration.kind} {declaration.name} is declared over the topic {declaration.topic}, which is not there: "
            f"make it with `ottla topics create {declaration.topic}`, or DROP {declaration.kind.upper()} {declaration.name}"
        )
    near = near_words(declaration.topic, topics)
    hint = f"did you mean topic='{near[0]}'?" if near else "partitions=3 in WITH makes it"
    raise SqlError(f"there is no topic {declaration.topic} for the {declaration.kind} {declaration.name}: {hint}")


def target_of(name: str, catalog: Catalog, topics: Topics) -> Declaration:
    """What INSERT INTO writes to."""
    declared = catalog.find(name)
    there = topics()
    if declared is not None:
        check_topic(declared, None, there, is_remembered=True)
        return declared
    if name in there:
        return undeclared(name)
    raise SqlError(unknown(name, catalog, there))


def check_statement_syntax(statement: Statement, cut: Cut) -> None:
    """Raise where the part of a statement that Spark runs is wrong, with the place in the text that it was cut from."""
    match statement:
        case Select(query) | Insert(query=query) | Create(query=Query() as query):
            sql, start = query.sql, query.start
        case Passed():
            sql, start = statement.sql, 0
        case _:
            return
    names = [(each.start, each.end) for each in find_references(sql).tables if not each.is_quoted and "-" in each.name]
    check_syntax(sql, names, begin=begin_of(cut, start))


def begin_of(cut: Cut, start: int) -> tuple[int, int]:
    """The line and column of a place of a statement, in the whole text."""
    line = cut.text.count("\n", 0, start)
    column = start - (cut.text.rfind("\n", 0, start) + 1)
    return cut.line + line, column + (cut.column if line == 0 else 1)


def analysis_error(error: Any, statement: Statement, cut: Cut) -> PlacedSqlError | None:
    """The sentence for a statement that Spark's analysis refuses; None if Spark does not say where."""
    found = fragment_of(error)
    if found is None:
        return None
    fragment, place = found
    match statement:
        case Select(query) | Insert(query=query) | Create(query=Query() as query):
            place += query.start
        case _:
            pass
    # Spark has seen names in backticks, and a window that was put in: the words are near the place that it gives.
    places = [each.start() for each in re.finditer(re.escape(fragment), cut.text)] if fragment else []
    start = min(places, key=lambda each: abs(each - place), default=min(place, len(cut.text)))
    return PlacedSqlError(f"{place_of(cut.text, start, (cut.line, cut.column))}: {analysis_sentence(error)}")


def check_columns_of(sql: str, resolved: Resolved, begin: tuple[int, int]) -> None:
    """Raise a column that is misspelt, where it is plain that it can be nothing else: in a simple SELECT over one source.

    What has several sources or queries, or functions with names of their own, is left to Spark.
    """
    declarations = list(resolved.sources.values())
    grammar = spark_grammar()
    if len(resolved.references.tables) != 1 or len(declarations) != 1 or grammar is None:
        return
    columns = [each.name for each in declarations[0].columns]
    if not columns or declarations[0].schema is not None or any(sign in sql for sign in ("->", "|>", "=>")):
        return
    tokens = tokenize(sql)
    if any(each.is_word(*NOT_SIMPLE) for each in tokens) or sum(each.is_word("SELECT", "FROM") for each in tokens) != 2:
        return
    table = resolved.references.tables[0]
    known = {each.lower() for each in (*columns, *METADATA, table.name)}
    tried = []
    for index, token in enumerate(tokens):
        if (
            not token.is_identifier
            or table.start <= token.start < table.end
            or grammar.is_keyword(sql[token.start : token.end])
        ):
            continue
        before = tokens[index - 1] if index else None
        after = tokens[index + 1] if index + 1 < len(tokens) else None
        if before is not None and (before.is_word("AS") or _ends_operand(before, grammar, sql)):
            known.add(token.value.lower())  # an alias
        elif not (before is not None and before.value in ".:@$") and not (
            after is not None and (after.kind == TEXT or after.value in (".", "(", ":"))
        ):
            tried.append(token)
    for token in tried:
        if token.value.lower() not in known and (
            near := near_words(token.value.lower(), [each.lower() for each in columns], count=3, cutoff=0.7)
        ):
            names = [each for word in near for each in columns if each.lower() == word]
            raise PlacedSqlError(
                f"{place_of(sql, token.start, begin)}: there is no column {token.value}: did you mean {' or '.join(names)}?"
            )


def _ends_operand(token: Token, grammar: Grammar, sql: str) -> bool:
    """Whether a name after this token is an alias."""
    if token.kind == SIGN:
        return token.value in (")", "]")
    return (
        not token.is_identifier
        or token.is_word("END", "NULL", "TRUE", "FALSE")
        or not grammar.is_keyword(sql[token.start : token.end])
    )


def check_all(
    cuts: Iterable[Cut], catalog: Catalog, settings: Settings, topics: Topics, *, has_grammar: bool = True
) -> list[Statement]:
    """Parse and check the statements of one run, each as if those before it had been run. Nothing is changed.

    `has_grammar` is false for a Spark of another version, whose grammar is not the one that is installed here.
    """
    catalog, settings = catalog.copy(), settings.copy()
    made: set[str] = set()
    views: set[str] = set()
    opened: list[Statement] = []
    """Statements after which Spark may know names that nothing here can know."""

    def there() -> Collection[str]:
        return {*topics(), *made}

    def is_view(name: str) -> bool:
        return bool(opened) or name.lower() in views

    found: list[Statement] = []
    cuts = list(cuts)
    for cut in cuts:
        try:
            statement = parse(cut.text)
            if has_grammar:
                check_statement_syntax(statement, cut)
            _check_one(statement, catalog, settings, there, is_view, made, cut=cut, is_opened=bool(opened))
        except PlacedSqlError:
            raise  # it says its place itself
        except SqlError as error:
            raise SqlError(f"{_place(cut, cuts)}{error}") from None
        if isinstance(statement, Passed):
            if statement.view is not None:
                views.add(statement.view.lower())
            else:
                opened.append(statement)
        found.append(statement)
    return found


def _check_one(
    statement: Statement,
    catalog: Catalog,
    settings: Settings,
    topics: Topics,
    is_view: Callable[[str], bool],
    made: set[str],
    *,
    cut: Cut,
    is_opened: bool,
) -> None:
    match statement:
        case Create(query=None):
            if statement.if_not_exists and catalog.find(statement.name) is not None:
                return
            declaration = declaration_of(statement, settings.registry)
            if check_topic(declaration, partitions_wanted(statement), topics()):
                made.add(declaration.topic)
            catalog.add(declaration, is_replacing=statement.is_replacing)
        case Drop():
            catalog.drop(statement.kind, statement.name, if_exists=statement.if_exists)
        case Set(name=str(), value=str()):
            settings.set(statement.name or "", statement.value or "")
        case Unset():
            settings.unset(statement.name)
        case Create():
            raise SqlError(CREATE_AS_IN_SHELL)
        case Insert():
            if statement.query.is_live:
                raise SqlError(INSERT_IN_SHELL)
            _check_columns(statement, target_of(statement.name, catalog, topics))
        case Print():
            if statement.topic not in (there := topics()):
                raise SqlError(unknown(statement.topic, catalog, there))
        case _:
            pass
    match statement:
        case Select(query) | Insert(query=query):
            resolved = resolve(query.sql, catalog, topics, is_view, query.window)
            if not is_opened and query.window is None:
                check_columns_of(query.sql, resolved, begin_of(cut, query.start))


def _check_columns(insert: Insert, target: Declaration) -> None:
    """The columns that an INSERT names must be columns of what it writes to. Those of an Avro schema are left to Spark."""
    there = [each.name for each in target.columns]
    known = {each.lower() for each in there} | METADATA.keys()
    for name in insert.columns:
        if there and name.lower() not in known:
            near = near_words(name.lower(), there)
            hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(there)}"
            raise SqlError(f"the {target.kind} {target.name} has no column {name}: {hint}")


def _place(cut: Cut, cuts: Sequence[Cut]) -> str:
    return f"line {cut.line}: " if len(cuts) > 1 or cut.line > 1 else ""
