"""Recognises the statements that are ours, with their lists of columns. What is not ours goes to Spark SQL unread. Pure."""

from __future__ import annotations

from itertools import pairwise

from ottla.errors.texts import near_words
from ottla.spark.sql.dialects import refuse_others, take_window, watermark_of
from ottla.spark.sql.errors import SqlError
from ottla.spark.sql.lexer import NUMBER, SIGN, TEXT, Token, split_at_commas, tokenize
from ottla.spark.sql.statements import (
    STREAM,
    TABLE,
    Column,
    Create,
    Describe,
    Drop,
    Insert,
    Passed,
    Print,
    Query,
    Select,
    Set,
    Show,
    Statement,
    Terminate,
    Unset,
)

TYPES = frozenset(
    {
        "BOOLEAN",
        "TINYINT",
        "BYTE",
        "SMALLINT",
        "SHORT",
        "INT",
        "INTEGER",
        "BIGINT",
        "LONG",
        "FLOAT",
        "REAL",
        "DOUBLE",
        "DECIMAL",
        "DEC",
        "NUMERIC",
        "STRING",
        "VARCHAR",
        "CHAR",
        "BINARY",
        "DATE",
        "TIMESTAMP",
        "TIMESTAMP_NTZ",
        "TIMESTAMP_LTZ",
        "ARRAY",
        "MAP",
        "STRUCT",
        "VARIANT",
    }
)
RENAMED = {"BYTES": "BINARY", "TEXT": "STRING", "BOOL": "BOOLEAN"}
"""Words of ksqlDB and others for types of Spark."""


def parse_columns(sql: str, tokens: list[Token]) -> tuple[Column, ...]:
    """The columns between the parentheses; `tokens` are those inside of them."""
    found: list[Column] = []
    for part in split_at_commas(tokens):
        column = _column(sql, part)
        if any(each.name.lower() == column.name.lower() for each in found):
            raise SqlError(f"the column {column.name} is declared twice: give each column its own name")
        found.append(column)
    keys = [each.name for each in found if each.is_key]
    if len(keys) > 1:
        raise SqlError(f"{' and '.join(keys)} are both KEY: a record has one key, so one column can be it")
    return tuple(found)


def _column(sql: str, tokens: list[Token]) -> Column:
    if not tokens or not tokens[0].is_identifier:
        shown = sql[tokens[0].start : tokens[-1].end] if tokens else "nothing"
        raise SqlError(f"a column is a name and a type, such as id BIGINT; {shown} is none")
    name, rest = tokens[0].value, tokens[1:]
    is_key = bool(rest) and rest[-1].is_word("KEY")
    if is_key:
        rest = rest[:-1]
        if rest and rest[-1].is_word("PRIMARY"):
            rest = rest[:-1]
    if not rest:
        raise SqlError(f"the column {name} has no type: write {name} STRING or {name} BIGINT, for example")
    return Column(name, _type(sql, name, rest), is_key)


def _type(sql: str, column: str, tokens: list[Token]) -> str:
    first = tokens[0].value.upper()
    if first == "VARCHAR" and len(tokens) == 1:
        return "STRING"
    chosen = RENAMED.get(first, first)
    if chosen not in TYPES:
        near = near_words(first, [*TYPES, *RENAMED])
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(TYPES))}"
        raise SqlError(f"the column {column} has the type {tokens[0].value}, which there is not: {hint}")
    rest = sql[tokens[0].end : tokens[-1].end]
    return (chosen + rest).strip()


SHOWN = ("STREAMS", "TABLES", "TOPICS", "QUERIES")
QUERY_WORDS = ("SELECT", "WITH", "VALUES", "FROM", "TABLE")


class StatementReader:
    """The tokens of one statement, and how far they are read."""

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self.tokens = tokenize(sql)
        self.place = 0

    def peek(self, ahead: int = 0) -> Token | None:
        """A token that is not read yet, or None after the last one."""
        index = self.place + ahead
        return self.tokens[index] if index < len(self.tokens) else None

    def accept(self, *words: str) -> bool:
        """Read these keywords, if they are next."""
        for ahead, word in enumerate(words):
            token = self.peek(ahead)
            if token is None or not token.is_word(word):
                return False
        self.place += len(words)
        return True

    def sign(self, value: str) -> bool:
        """Read a sign, if it is next."""
        token = self.peek()
        if token is None or token.kind != SIGN or token.value != value:
            return False
        self.place += 1
        return True

    def name(self, what: str, example: str) -> str:
        """Read a name, which may have dashes and dots as topics' names do."""
        token = self.peek()
        if token is None or not (token.is_identifier or token.kind == TEXT):
            raise SqlError(f"the name of the {what} is missing after {self.before()}: write {example}")
        self.place += 1
        end = token.end
        while (more := self.peek()) is not None and more.start == end and not (more.kind == SIGN and more.value not in "-."):
            end, self.place = more.end, self.place + 1
        return token.value if end == token.end else self.sql[token.start : end]

    def inside(self) -> list[Token]:
        """Read the tokens within parentheses; the opening one is read already."""
        depth, begin = 1, self.place
        while (token := self.peek()) is not None:
            self.place += 1
            if token.kind == SIGN and token.value in "()":
                depth += 1 if token.value == "(" else -1
                if depth == 0:
                    return self.tokens[begin : self.place - 1]
        raise SqlError("a parenthesis has no end: close it with )")

    def before(self) -> str:
        """What was read last, for messages."""
        return self.sql[: self.tokens[self.place - 1].end].split("\n")[-1][-40:] if self.place else "the beginning"

    def rest(self) -> str:
        """The text that is not read yet."""
        token = self.peek()
        return "" if token is None else self.sql[token.start :]

    def end(self, example: str) -> None:
        """Refuse what is left."""
        if self.peek() is not None:
            raise SqlError(f"{self.rest().split(chr(10))[0][:40]!r} is left after {self.before()}: write {example}")


def parse(sql: str) -> Statement:
    """The statement of one text without a semicolon."""
    reader = StatementReader(sql)
    if not reader.tokens:
        raise SqlError("there is no statement")
    refuse_others(reader.tokens)
    for words, make in _OURS:
        if reader.accept(*words):
            found = make(reader)
            if found is not None:
                return found
            reader.place = 0
    first = reader.tokens[0]
    if first.is_word(*QUERY_WORDS) or (first.kind == SIGN and first.value == "("):
        return Select(_query(reader))
    return Passed(sql, _view(reader), is_local=_is_local(reader.tokens))


def _create(reader: StatementReader) -> Statement | None:
    is_replacing = reader.accept("OR", "REPLACE")
    # ksqlDB has CREATE SOURCE STREAM for what is only read; here that is every stream.
    reader.accept("SOURCE")
    kind = STREAM if reader.accept("STREAM") else TABLE if reader.accept("TABLE") else None
    if kind is None:
        return None
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    example = f"CREATE {kind.upper()} orders (id BIGINT, amount DOUBLE) WITH (topic='orders', format='json')"
    name = reader.name(kind, example)
    columns, watermark = _columns(reader) if reader.sign("(") else ((), {})
    options: dict[str, str] = {}
    if reader.accept("WITH"):
        if not reader.sign("("):
            raise SqlError(f"WITH has no options in parentheses: write {example}")
        options = _options(reader, reader.inside())
        if twice := [each for each in watermark if each in options]:
            raise SqlError(f"WATERMARK FOR and {twice[0]} in WITH say the same: write one of them")
        options |= watermark
    elif kind == TABLE and not reader.accept("AS"):
        return None  # CREATE TABLE x (…) USING parquet is Spark's
    elif kind == TABLE:
        return None  # and so is CREATE TABLE x AS SELECT …
    query = None
    if reader.accept("AS"):
        query = _query(reader)
    else:
        reader.end(example)
    return Create(kind, name, columns, options, is_replacing, if_not_exists, query)


def _columns(reader: StatementReader) -> tuple[tuple[Column, ...], dict[str, str]]:
    """The declared columns, and the options that Flink's WATERMARK FOR among them stands for."""
    declared: list[Token] = []
    watermark: dict[str, str] = {}
    for part in split_at_commas(reader.inside()):
        if len(part) > 1 and part[0].is_word("WATERMARK") and part[1].is_word("FOR"):
            watermark["timestamp"], watermark["watermark"] = watermark_of(reader.sql, part[2:])
            continue
        if declared and part:
            declared.append(Token(SIGN, ",", part[0].start, part[0].start))
        declared += part
    return parse_columns(reader.sql, declared), watermark


def _options(reader: StatementReader, tokens: list[Token]) -> dict[str, str]:
    found: dict[str, str] = {}
    example = "name='value' with commas between them, such as topic='orders', format='json'"
    for part in split_at_commas(tokens):
        if len(part) != 3 or part[1].value != "=" or not (part[0].is_identifier or part[0].kind == TEXT):
            shown = reader.sql[part[0].start : part[-1].end] if part else "an empty place"
            raise SqlError(f"WITH takes {example}; {shown} is none")
        if part[2].kind not in (TEXT, NUMBER) and not part[2].is_word("TRUE", "FALSE"):
            raise SqlError(f"the value of {part[0].value} in WITH needs quotes: {part[0].value}='{part[2].value}'")
        name = part[0].value.lower()
        if name in found:
            raise SqlError(f"{name} is given twice in WITH: give it once")
        found[name] = part[2].value
    return found


def _drop(reader: StatementReader) -> Statement | None:
    kind = STREAM if reader.accept("STREAM") else TABLE if reader.accept("TABLE") else None
    if kind is None:
        return None
    if_exists = reader.accept("IF", "EXISTS")
    example = f"DROP {kind.upper()} orders"
    name = reader.name(kind, example)
    if reader.accept("DELETE", "TOPIC"):
        raise SqlError("DELETE TOPIC is not done here: drop the name, then run `ottla topics delete`")
    reader.end(example)
    return Drop(kind, name, if_exists)


def _show(reader: StatementReader) -> Statement | None:
    reader.accept("ALL")  # ksqlDB's SHOW ALL TOPICS
    reader.accept("EXTENDED")
    word = reader.peek()
    if word is None:
        raise SqlError(f"SHOW needs a word after it: {', '.join(SHOWN)}")
    if word.is_word(*SHOWN) and reader.peek(1) is None:
        return Show(word.value.upper())
    near = near_words(word.value.upper(), SHOWN, cutoff=0.8)
    if near and near[0] != word.value.upper() and reader.peek(1) is None:
        raise SqlError(f"SHOW {word.value} is not there: did you mean SHOW {near[0]}?")
    return None


def _describe(reader: StatementReader) -> Statement | None:
    if reader.peek() is not None and reader.peek().is_word("FUNCTION", "DATABASE", "QUERY", "FORMATTED"):  # type: ignore[union-attr]
        return None
    reader.accept("EXTENDED")  # all that there is to say is said in any case
    reader.accept("STREAM") or reader.accept("TABLE")
    name = reader.name("stream", "DESCRIBE orders")
    reader.accept("EXTENDED")
    return Describe(name) if reader.peek() is None else None


def _print(reader: StatementReader) -> Statement:
    example = "PRINT orders FROM BEGINNING LIMIT 3"
    name = reader.name("topic", example)
    from_beginning = reader.accept("FROM", "BEGINNING")
    limit = None
    number = reader.peek(1)
    if number is not None and number.value.isdigit() and reader.accept("LIMIT"):
        limit, reader.place = int(number.value), reader.place + 1
    reader.end(example)
    return Print(name, from_beginning, limit)


def _explain(reader: StatementReader) -> Statement | None:
    """EXPLAIN of a live query explains its SELECT."""
    for word in ("EXTENDED", "FORMATTED", "CODEGEN", "COST", "LOGICAL"):
        if reader.accept(word):
            break
    token = reader.peek()
    if token is None or not token.is_word(*QUERY_WORDS):
        return None
    start = token.start
    query = _query(reader)
    return Passed(reader.sql[:start] + query.sql, window=query.window, is_local=True)


def _set(reader: StatementReader) -> Statement | None:
    if reader.peek() is None:
        return Set()
    if reader.peek().is_word("TIME", "VAR", "VARIABLE", "CATALOG", "PATH", "ROLE"):  # type: ignore[union-attr]
        return None
    name, equals, value = _setting(reader)
    if equals and not value:
        raise SqlError(f"SET '{name}' has no value: write SET '{name}'='…', or UNSET '{name}'")
    return Set(name, value if equals else None)


def _setting(reader: StatementReader) -> tuple[str, str, str]:
    """A name, the equals sign if there is one, and the value. Quotes are optional, as in Spark's own SET."""
    first = reader.tokens[reader.place]
    if first.kind == TEXT:
        reader.place += 1
        if not reader.sign("="):
            reader.end("SET 'auto.offset.reset'='earliest'")
            return first.value, "", ""
        second = reader.peek()
        if second is not None and second.kind == TEXT and reader.peek(1) is None:
            return first.value, "=", second.value
        return first.value, "=", reader.rest().strip()
    name, equals, value = reader.rest().partition("=")
    value = value.strip()
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
        value = value[1:-1]
    return name.strip(), equals, value


def _unset(reader: StatementReader) -> Statement:
    if reader.peek() is None:
        raise SqlError("UNSET needs the name of a setting: write UNSET 'auto.offset.reset'")
    name, equals, _ = _setting(reader)
    if equals:
        raise SqlError(f"UNSET takes only a name: write UNSET '{name}'")
    return Unset(name)


def _insert(reader: StatementReader) -> Statement | None:
    if reader.peek() is not None and reader.peek().is_word("OVERWRITE"):  # type: ignore[union-attr]
        raise SqlError("INSERT OVERWRITE cannot empty a topic: write INSERT INTO")
    if not reader.accept("INTO"):
        return None
    example = "INSERT INTO orders VALUES (1, 9.5)"
    reader.accept("TABLE")
    name = reader.name("stream", example)
    columns: tuple[str, ...] = ()
    opening, following = reader.peek(), reader.peek(1)
    is_query = following is not None and following.is_word(*QUERY_WORDS)
    if opening is not None and opening.value == "(" and not is_query:
        reader.sign("(")
        parts = split_at_commas(reader.inside())
        if not parts or any(len(part) != 1 or not part[0].is_identifier for part in parts):
            raise SqlError(f"the columns of INSERT INTO {name} are names with commas between them: write {example}")
        columns = tuple(part[0].value for part in parts)
    token = reader.peek()
    if token is None or not (token.is_word(*QUERY_WORDS) or token.value == "("):
        raise SqlError(f"INSERT INTO {name} has neither VALUES nor SELECT: write {example}")
    return Insert(name, columns, _query(reader))


def _terminate(reader: StatementReader) -> Statement:
    name = reader.name("query", "TERMINATE query_1, or TERMINATE ALL")
    reader.end("TERMINATE query_1, or TERMINATE ALL")
    return Terminate(name)


def _query(reader: StatementReader) -> Query:
    """The rest of the statement, without EMIT CHANGES and, then, without its LIMIT."""
    tokens = reader.tokens[reader.place :]
    if not tokens:
        raise SqlError(f"there is no SELECT after {reader.before()}")
    start, end, limit, is_live = tokens[0].start, len(tokens), None, False
    for _ in range(2):  # ksqlDB writes EMIT CHANGES LIMIT 3; the other order is understood too
        if end >= 2 and tokens[end - 2].is_word("EMIT") and tokens[end - 1].is_word("CHANGES") and not is_live:
            is_live, end = True, end - 2
        elif (
            end >= 2
            and tokens[end - 2].is_word("LIMIT")
            and tokens[end - 1].kind == NUMBER
            and tokens[end - 1].value.isdigit()
            and (is_live or _is_emit(tokens[: end - 2]))
        ):
            limit, end = int(tokens[end - 1].value), end - 2
    if any(one.is_word("EMIT") and two.is_word("FINAL") for one, two in pairwise(tokens)):
        raise SqlError("EMIT FINAL is not there: leave EMIT out for the result now, or write EMIT CHANGES for a live one")
    if end == 0:
        raise SqlError("EMIT CHANGES has no SELECT before it")
    reader.place = len(reader.tokens)
    sql, window = take_window(reader.sql[start : tokens[end - 1].end])
    return Query(sql, is_live, limit, start, window)


def _is_emit(tokens: list[Token]) -> bool:
    return len(tokens) >= 2 and tokens[-2].is_word("EMIT") and tokens[-1].is_word("CHANGES")


def _is_local(tokens: list[Token]) -> bool:
    """Whether a statement of Spark changes only its session: a temporary view or a variable."""
    words = [each.value.upper() for each in tokens[:4]]
    if words[:1] == ["CREATE"]:
        rest = words[3:] if words[1:3] == ["OR", "REPLACE"] else words[1:]
        return rest[:1] in (["TEMP"], ["TEMPORARY"]) and "FUNCTION" not in rest
    return words[:1] == ["DECLARE"] or (words[:1] == ["SET"] and words[1:2] in (["VAR"], ["VARIABLE"], ["TIME"]))


def _view(reader: StatementReader) -> str | None:
    """The name in CREATE [OR REPLACE] [TEMPORARY] VIEW name."""
    if not reader.accept("CREATE"):
        return None
    reader.accept("OR", "REPLACE")
    reader.accept("GLOBAL")
    reader.accept("TEMP") or reader.accept("TEMPORARY")
    if not reader.accept("VIEW"):
        return None
    reader.accept("IF", "NOT", "EXISTS")
    token = reader.peek()
    return token.value if token is not None and token.is_identifier else None


_OURS = (
    (("CREATE",), _create),
    (("DROP",), _drop),
    (("SHOW",), _show),
    (("LIST",), _show),
    (("DESCRIBE",), _describe),
    (("DESC",), _describe),
    (("SET",), _set),
    (("UNSET",), _unset),
    (("INSERT",), _insert),
    (("TERMINATE",), _terminate),
    (("PRINT",), _print),
    (("EXPLAIN",), _explain),
)
