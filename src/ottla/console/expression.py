"""The language of searches: `value.total > 5 and headers.source == "shop"`. Pure; nothing is evaluated as code.

    expression   term {"or" term};  term: factor {"and" factor};  factor: "not" factor | "(" expression ")" | comparison
    comparison   operand [operator operand];  a text alone is looked for in key, value and headers
    operator     == != < <= > >= contains matches in
    operand      a field with a path (key, value.order.items[*].sku, headers.source, headers["a b"], timestamp, partition,
                 offset, size), a text in quotes, a number, true, false, null, a list [1, 2]

Paths lead into JSON, or into what another form (Avro, Protobuf) decodes to. A comparison is true if any value that the path
leads to fulfils it; a path that leads nowhere equals null. `matches` takes a regular expression of RE2, whose time is linear.
`parse` gives a `Search`: its test, and byte strings one of which every matching record holds (`needles`), so that most batches
are passed over without being decoded.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, Protocol

import re2

from ottla.errors import OttlaError

LENGTH_MAX: Final = 4_000
DEPTH_MAX: Final = 50
PATTERN_BYTES_MAX: Final = 8 * 1024 * 1024
"""The memory that one regular expression may take."""

FIELDS: Final = ("key", "value", "headers", "timestamp", "partition", "offset", "size")
OPERATORS: Final = ("==", "!=", "<=", ">=", "<", ">", "contains", "matches", "in")
_WORDS: Final = ("and", "or", "not", "contains", "matches", "in", "true", "false", "null")
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.])"""
    r"""|(?P<word>[A-Za-z_][\w-]*)|(?P<sign>==|!=|<=|>=|<|>|\(|\)|\[|\]|,|\.|\*))"""
)
_ORDERS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

Headers = Sequence[tuple[str, bytes | None]]


class Subject(Protocol):
    """A record as a search sees it."""

    @property
    def headers(self) -> Headers: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def size(self) -> int: ...
    def data(self, part: str) -> bytes | None:
        """`key` or `value` as text in UTF-8; None for null."""
        ...

    def parsed(self, part: str) -> Any:
        """The same as JSON has it; None for null and for what is no JSON."""
        ...


Test = Callable[[Subject], bool]
_Values = Callable[[Subject], list[Any]]
Needles = frozenset[bytes] | None


class ExpressionError(OttlaError):
    """An expression that cannot be read: where, and what was expected."""

    def __init__(self, column: int, text: str) -> None:
        super().__init__(f"column {column}: {text}")
        self.column = column


class Search(NamedTuple):
    """A parsed expression."""

    text: str
    test: Test
    needles: Needles
    """A record that matches holds one of these, if keys and values are JSON or text; None: nothing is known."""


class _Token(NamedTuple):
    kind: str
    text: str
    column: int


class _Node(NamedTuple):
    test: Test
    needles: Needles


class _Path(NamedTuple):
    """A field, and the names, indexes and `None` (every item) that follow it."""

    field: str
    steps: tuple[str | int | None, ...]
    column: int


class _Constant(NamedTuple):
    value: Any
    column: int


def parse(text: str) -> Search:
    """The search that an expression describes. Raises `ExpressionError`."""
    if len(text) > LENGTH_MAX:
        raise ExpressionError(LENGTH_MAX, f"the expression has {len(text):,} characters, and {LENGTH_MAX:,} are allowed")
    parser = _Parser(_tokens(text))
    node = parser.expression(0)
    parser.expect_end()
    return Search(text, node.test, node.needles)


def _tokens(text: str) -> list[_Token]:
    found, at = [], 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            at += len(text[at:]) - len(text[at:].lstrip())
            what = "a text without its closing quote" if text[at] in "\"'" else f"{text[at]!r}"
            raise ExpressionError(at + 1, f"{what} was not expected: write texts in quotes, compare with {' '.join(OPERATORS)}")
        kind = str(match.lastgroup)
        found.append(_Token(kind, match[kind], match.start(kind) + 1))
        at = match.end()
    return [*found, _Token("end", "", len(text) + 1)]


class _Parser:
    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self) -> _Token:
        token = self._next
        self._at += token.kind != "end"
        return token

    def _skip(self, *texts: str) -> bool:
        if self._next.kind in ("word", "sign") and self._next.text in texts:
            self._at += 1
            return True
        return False

    def _wrong(self, expected: str, token: _Token | None = None) -> ExpressionError:
        token = token or self._next
        found = "the end" if token.kind == "end" else token.text[:40]
        return ExpressionError(token.column, f"expected {expected}, found {found}")

    def expect_end(self) -> None:
        if self._next.kind != "end":
            raise self._wrong("and, or, or the end")

    def expression(self, depth: int) -> _Node:
        if depth > DEPTH_MAX:
            raise ExpressionError(self._next.column, f"more than {DEPTH_MAX} parentheses or nots are open")
        found = [self._term(depth)]
        while self._skip("or"):
            found.append(self._term(depth))
        return found[0] if len(found) == 1 else _either(found)

    def _term(self, depth: int) -> _Node:
        found = [self._factor(depth)]
        while self._skip("and"):
            found.append(self._factor(depth))
        return found[0] if len(found) == 1 else _both(found)

    def _factor(self, depth: int) -> _Node:
        if self._skip("not"):
            if depth > DEPTH_MAX:
                raise ExpressionError(self._next.column, f"more than {DEPTH_MAX} parentheses or nots are open")
            inner = self._factor(depth + 1).test
            return _Node(lambda record: not inner(record), None)
        if self._skip("("):
            node = self.expression(depth + 1)
            if not self._skip(")"):
                raise self._wrong("and, or, or a closing parenthesis")
            return node
        return self._comparison()

    def _comparison(self) -> _Node:
        left = self._operand("a field, a text in quotes, not, or an opening parenthesis")
        token = self._next
        if token.text not in OPERATORS:
            if isinstance(left, _Constant):
                if isinstance(left.value, str) and left.value:
                    return _anywhere(left.value)
                raise self._wrong(f"one of {' '.join(OPERATORS)}")
            raise self._wrong(f"one of {' '.join(OPERATORS)}")
        self._take()
        right = self._operand(f"a value after {token.text}")
        return _compare(left, token, right)

    def _operand(self, expected: str) -> _Path | _Constant:
        token = self._next
        if token.kind == "text":
            self._take()
            return _Constant(_unquoted(token), token.column)
        if token.kind == "number":
            self._take()
            return _Constant(_number(token), token.column)
        if self._skip("["):
            return self._list(token)
        if token.kind == "word":
            if token.text in ("true", "false", "null"):
                self._take()
                return _Constant({"true": True, "false": False, "null": None}[token.text], token.column)
            if token.text in FIELDS:
                self._take()
                return self._path(token)
            if token.text not in _WORDS:
                raise ExpressionError(
                    token.column,
                    f"there is no field {token.text[:40]}: write one of {', '.join(FIELDS)}, or a text in quotes",
                )
        raise self._wrong(expected)

    def _list(self, start: _Token) -> _Constant:
        items: list[Any] = []
        while not self._skip("]"):
            if items and not self._skip(","):
                raise self._wrong("a comma or ]")
            each = self._operand("a text, a number, or ]")
            if not isinstance(each, _Constant) or isinstance(each.value, list):
                raise ExpressionError(each.column, "expected a text or a number: a list holds nothing else")
            items.append(each.value)
        return _Constant(items, start.column)

    def _path(self, field: _Token) -> _Path:
        steps: list[str | int | None] = []
        while True:
            if self._skip("."):
                token = self._take()
                if token.kind not in ("word", "number"):
                    raise self._wrong('a name after the dot, or ["a name"]', token)
                steps.append(token.text)
            elif self._skip("["):
                token = self._take()
                if token.kind == "text":
                    steps.append(_unquoted(token))
                elif token.kind == "number" and token.text.lstrip("-").isdigit():
                    steps.append(int(token.text))
                elif token.text == "*":
                    steps.append(None)
                else:
                    raise self._wrong("a name in quotes, a number, or * for every item", token)
                if not self._skip("]"):
                    raise self._wrong("]")
            else:
                break
        if steps and field.text not in ("key", "value", "headers"):
            raise ExpressionError(field.column, f"{field.text} is a number: it has no {steps[0]}")
        if field.text == "headers" and (len(steps) > 1 or (steps and not isinstance(steps[0], str))):
            raise ExpressionError(field.column, 'write headers.NAME or headers["NAME"]: a header has no parts')
        return _Path(field.text, tuple(steps), field.column)


def _unquoted(token: _Token) -> str:
    r"""Escapes are JSON's; in single quotes, \' too. What is no escape stays, so that patterns need no doubled backslashes."""
    body = token.text[1:-1]
    if "\\" not in body:
        return body
    plain = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "'": "'", "\\": "\\"}
    return re.sub(
        r"\\(?:u([0-9a-fA-F]{4})|(.))",
        lambda found: chr(int(found[1], 16)) if found[1] else plain.get(found[2], "\\" + found[2]),
        body,
    )


def _number(token: _Token) -> int | float:
    return int(token.text) if token.text.lstrip("-").isdigit() else float(token.text)


# Tests


def _either(nodes: list[_Node]) -> _Node:
    tests = [each.test for each in nodes]
    known = [each.needles for each in nodes if each.needles is not None]
    needles = frozenset().union(*known) if len(known) == len(nodes) else None
    return _Node(lambda record: any(each(record) for each in tests), needles)


def _both(nodes: list[_Node]) -> _Node:
    tests = [each.test for each in nodes]
    known = [each.needles for each in nodes if each.needles is not None]
    # The rarest: the set whose shortest text is the longest.
    needles = max(known, key=lambda each: min(map(len, each), default=1 << 30)) if known else None
    return _Node(lambda record: all(each(record) for each in tests), needles)


def _anywhere(text: str) -> _Node:
    data = text.encode("utf-8", "surrogatepass")

    def test(record: Subject) -> bool:
        for part in ("value", "key"):
            found = record.data(part)
            if found is not None and data in found:
                return True
        return any(text in name or (value is not None and data in value) for name, value in record.headers)

    return _Node(test, frozenset((data,)))


def _compare(left: _Path | _Constant, sign: _Token, right: _Path | _Constant) -> _Node:
    if isinstance(left, _Constant) and isinstance(right, _Constant):
        raise ExpressionError(left.column, "expected a field on one side: both sides are constants")
    if sign.text == "matches":
        if not isinstance(right, _Constant) or not isinstance(right.value, str):
            raise ExpressionError(right.column, "expected a regular expression in quotes after matches")
        return _Node(_matches(left, right), None)
    if sign.text == "in":
        if not isinstance(right, _Constant) or not isinstance(right.value, list):
            raise ExpressionError(right.column, "expected a list such as [1, 2] after in")
        return _either([_equal(left, _Constant(each, right.column)) for each in right.value] or [_never()])
    for each in (left, right):
        if isinstance(each, _Constant) and isinstance(each.value, list):
            raise ExpressionError(each.column, f"a list can only follow in, not {sign.text}")
    if sign.text == "==":
        return _equal(left, right)
    if sign.text == "!=":
        same = _equal(left, right).test
        return _Node(lambda record: not same(record), None)
    if sign.text == "contains":
        return _contains(left, right)
    return _ordered(left, sign.text, right)


def _never() -> _Node:
    return _Node(lambda record: False, frozenset())


def _values(operand: _Path | _Constant, beside: Any = "") -> _Values:
    """The values of an operand, as they can be compared with `beside`."""
    if isinstance(operand, _Constant):
        values = [operand.value]
        return lambda record: values
    field, steps, _ = operand
    wants_text = isinstance(beside, str)
    if field in ("key", "value"):
        if steps:
            return lambda record: _at(record.parsed(field), steps)
        if wants_text:

            def texts(record: Subject) -> list[Any]:
                data = record.data(field)
                return [] if data is None else [data.decode("utf-8", "replace")]

            return texts
        return lambda record: [record.parsed(field)]
    if field == "headers":
        name = steps[0] if steps else None

        def headers(record: Subject) -> list[Any]:
            found = [
                None if value is None else value.decode("utf-8", "replace")
                for each, value in record.headers
                if name is None or each == name
            ]
            return found if wants_text else [_plain(each) for each in found]

        return headers
    return {
        "timestamp": lambda record: [record.timestamp],
        "partition": lambda record: [record.partition],
        "offset": lambda record: [record.offset],
        "size": lambda record: [record.size],
    }[field]


def _plain(text: str | None) -> Any:
    """A header's text as a number or a truth value, if it is one."""
    if text is None:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, int | float | bool) else text


def _at(value: Any, steps: Sequence[str | int | None]) -> list[Any]:
    found = [value]
    for step in steps:
        if step is None:
            found = [each for one in found if isinstance(one, list) for each in one]
        elif isinstance(step, int):
            found = [one[step] for one in found if isinstance(one, list) and -len(one) <= step < len(one)]
        else:
            found = [one[step] for one in found if isinstance(one, dict) and step in one]
    return found


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "truth"
    return "number" if isinstance(value, int | float) else type(value).__name__


def _equal(left: _Path | _Constant, right: _Path | _Constant) -> _Node:
    if isinstance(left, _Constant):
        left, right = right, left
    assert isinstance(left, _Path)
    if isinstance(right, _Path):
        ours, theirs = _values(left), _values(right)
        return _Node(lambda record: any(_kind(a) == _kind(b) and a == b for a in ours(record) for b in theirs(record)), None)
    wanted = right.value
    if wanted is None:
        return _Node(_is_null(left), None)
    if left.field == "timestamp":
        wanted = _moment(wanted, right.column)
    if not left.steps and left.field in ("key", "value") and isinstance(wanted, str):
        field, data = left.field, wanted.encode("utf-8", "surrogatepass")
        return _Node(lambda record: record.data(field) == data, frozenset((data,)) if data else None)
    values, kind = _values(left, wanted), _kind(wanted)
    return _Node(lambda record: any(each == wanted and _kind(each) == kind for each in values(record)), _needles(left, wanted))


def _is_null(path: _Path) -> Test:
    field, steps, _ = path
    if field in ("key", "value") and not steps:
        return lambda record: record.data(field) is None
    values = _values(path)

    def test(record: Subject) -> bool:
        found = values(record)
        return not found or any(each is None for each in found)

    return test


def _ordered(left: _Path | _Constant, sign: str, right: _Path | _Constant) -> _Node:
    compare = _ORDERS[sign]
    for one, other in ((left, right), (right, left)):
        if isinstance(one, _Constant):
            if isinstance(other, _Path) and other.field == "timestamp":
                moment = _Constant(_moment(one.value, one.column), one.column)
                left, right = (moment, right) if one is left else (left, moment)
            elif not isinstance(one.value, int | float | str) or isinstance(one.value, bool):
                raise ExpressionError(one.column, f"expected a number or a text beside {sign}")
    if isinstance(left, _Path) and isinstance(right, _Constant) and _is_plain(left) and _kind(right.value) == "number":
        return _Node(_plain_order(left, compare, right.value), _needles(left, None))
    beside_left = right.value if isinstance(right, _Constant) else 0
    beside_right = left.value if isinstance(left, _Constant) else 0
    ours, theirs = _values(left, beside_left), _values(right, beside_right)

    def test(record: Subject) -> bool:
        return any(
            compare(a, b)
            for a in ours(record)
            for b in theirs(record)
            if (kind := _kind(a)) == _kind(b) and kind in ("number", "str")
        )

    path = left if isinstance(left, _Path) else right
    return _Node(test, _needles(path, None) if isinstance(path, _Path) else None)


def _is_plain(path: _Path) -> bool:
    """Whether it leads to one value at most."""
    return path.field in ("key", "value") and bool(path.steps) and None not in path.steps


def _plain_order(path: _Path, compare: Callable[[Any, Any], Any], limit: float) -> Test:
    """The most frequent comparison, without lists: three times as fast."""
    field, steps, _ = path

    def test(record: Subject) -> bool:
        value = record.parsed(field)
        for step in steps:
            kind = type(value)
            if (kind is dict and step in value) or (kind is list and type(step) is int and -len(value) <= step < len(value)):
                value = value[step]
            else:
                return False
        kind = type(value)
        return (kind is int or kind is float) and bool(compare(value, limit))

    return test


def _contains(left: _Path | _Constant, right: _Path | _Constant) -> _Node:
    if not isinstance(right, _Constant) or isinstance(right.value, bool) or not isinstance(right.value, str | int | float):
        raise ExpressionError(right.column, "expected a text in quotes after contains")
    if not isinstance(left, _Path):
        raise ExpressionError(left.column, "expected a field before contains")
    wanted = right.value
    if isinstance(wanted, str) and not left.steps and left.field in ("key", "value"):
        field, data = left.field, wanted.encode("utf-8", "surrogatepass")
        return _Node(
            lambda record: (found := record.data(field)) is not None and data in found, frozenset((data,)) if data else None
        )
    if isinstance(wanted, str) and not left.steps and left.field == "headers":
        text, inner = wanted, wanted.encode("utf-8", "surrogatepass")
        return _Node(
            lambda record: any(text in name or (value is not None and inner in value) for name, value in record.headers),
            frozenset((inner,)) if inner else None,
        )
    values, kind = _values(left, wanted), _kind(wanted)

    def test(record: Subject) -> bool:
        for each in values(record):
            if isinstance(each, str):
                if isinstance(wanted, str) and wanted in each:
                    return True
            elif isinstance(each, list) and any(one == wanted and _kind(one) == kind for one in each):
                return True
        return False

    return _Node(test, _needles(left, wanted))


def _matches(left: _Path | _Constant, pattern: _Constant) -> Test:
    options = re2.Options()
    options.max_mem = PATTERN_BYTES_MAX
    options.log_errors = False
    try:
        # As bytes: of a text, the binding makes bytes for each search, and a table of its offsets.
        found = re2.compile(pattern.value.encode("utf-8", "surrogatepass"), options).search
    except re2.error as problem:
        why = problem.args[0].decode() if problem.args and isinstance(problem.args[0], bytes) else str(problem)
        raise ExpressionError(pattern.column, f"expected a regular expression (RE2): {why}") from None
    if isinstance(left, _Path) and left.field in ("key", "value") and not left.steps:
        field = left.field
        return lambda record: (data := record.data(field)) is not None and found(data) is not None
    values = _values(left)
    return lambda record: any(
        isinstance(each, str) and found(each.encode("utf-8", "replace")) is not None for each in values(record)
    )


def _moment(given: Any, column: int) -> Any:
    if isinstance(given, str):
        try:
            moment = datetime.fromisoformat(given)
        except ValueError:
            raise ExpressionError(column, "expected a time such as 2026-01-31T12:00, or milliseconds since 1970") from None
        return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    return given


def _needles(path: _Path, wanted: Any) -> Needles:
    """Bytes that a record must hold for a comparison to be true: the text itself, or else the first name of the path."""
    if path.field == "headers":
        return frozenset((wanted.encode(),)) if isinstance(wanted, str) and wanted and _is_safe(wanted) else None
    if path.field not in ("key", "value") or not path.steps:
        return None
    if isinstance(wanted, str) and wanted and _is_safe(wanted):
        return _in_json(wanted)
    if isinstance(path.steps[0], str) and _is_safe(path.steps[0]):
        return _in_json(f'"{path.steps[0]}"')
    return None


def _is_safe(text: str) -> bool:
    """Whether JSON may hold the text as it is, and nothing that is not UTF-8 reads as it."""
    return text.isprintable() and not any(each in '"\\\ufffd' for each in text)


def _in_json(text: str) -> Needles:
    """How JSON may write a text: as it is, or with escapes."""
    found = {text.encode(), b"\\u00" if text.isascii() else b"\\u"}
    if "/" in text:
        found.add(b"\\/")
    return frozenset(found)
