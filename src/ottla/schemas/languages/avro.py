"""Avro schemas: parsed, printed as Java's Avro prints them, and compared by Avro's rules for resolution.

The canonical text is compact JSON: attributes in the order of Java's `Schema.toString`, unknown attributes kept, names short
where the enclosing namespace says the rest, a bare `"string"` for a primitive without attributes. Schemas that are referenced
are known by name and are not written out. The normalized text has full names, sorted attributes and sorted aliases.

Reader and writer are compared as Avro's specification says which data resolves (names, promotions, defaults, unions).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ottla.schemas.languages import DEPTH_MAX, InvalidSchema, Parsed, Source

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
NAMED = ("record", "error", "enum", "fixed")
PROMOTIONS = {
    "long": {"int"},
    "float": {"int", "long"},
    "double": {"int", "long", "float"},
    "string": {"bytes"},
    "bytes": {"string"},
}
"""What a reader of a type takes besides the type itself."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ATTRIBUTES = {
    "record": {"type", "name", "namespace", "doc", "fields", "aliases"},
    "enum": {"type", "name", "namespace", "doc", "symbols", "default", "aliases"},
    "fixed": {"type", "name", "namespace", "doc", "size", "aliases"},
    "array": {"type", "items"},
    "map": {"type", "values"},
    "field": {"name", "type", "doc", "default", "order", "aliases"},
}
_FIRST_OF_OTHERS = ("logicalType", "precision", "scale")
_DIFFERENCES_MAX = 50
NO_DEFAULT: Any = object()


@dataclass(eq=False, slots=True)
class Field:
    """A field of a record."""

    name: str
    type: Type
    default: Any = NO_DEFAULT
    doc: str | None = None
    order: str | None = None
    aliases: list[str] = field(default_factory=list)
    others: dict[str, Any] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Type:
    """A schema. Which attributes matter depends on `kind`."""

    kind: str
    name: str = ""
    """The full name of a record, enum or fixed."""
    doc: str | None = None
    aliases: list[str] = field(default_factory=list)
    """Full names."""
    fields: list[Field] = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)
    default: Any = NO_DEFAULT
    size: int = 0
    items: Type | None = None
    branches: list[Type] = field(default_factory=list)
    others: dict[str, Any] = field(default_factory=dict)

    @property
    def is_named(self) -> bool:
        return self.kind in NAMED

    @property
    def label(self) -> str:
        """How the type is called in sentences."""
        return f"{self.kind} {self.name}" if self.is_named else self.kind


def parse(source: Source) -> Parsed:
    """The texts to store. Defaults are checked against their types."""
    named = _imported(source)
    imported = set(named)
    found = _Parser(named, is_new=True).parse(_json(source.text))
    return Parsed(
        _compact(_printed(found, "", set(imported))), _compact(_printed(found, "", set(imported), is_normalized=True))
    )


def differences(reader: Source, writer: Source, policy: str = "STRICT") -> list[str]:
    """Why data written with `writer` cannot be read with `reader`."""
    return _Comparison().run(_loaded(reader), _loaded(writer))


def load(source: Source) -> Type:
    """The parsed form of a schema that is stored."""
    return _loaded(source)


def _loaded(source: Source) -> Type:
    return _Parser(_imported(source), is_new=False).parse(_json(source.text))


def _imported(source: Source) -> dict[str, Type]:
    """The types of the referenced schemas, by full name."""
    named: dict[str, Type] = {}
    for each in source.imports:
        try:
            _Parser(named, is_new=False).parse(_json(each.text))
        except InvalidSchema as problem:
            if "is defined twice" not in str(problem):
                raise InvalidSchema(f"the reference '{each.name}' (subject {each.subject}): {problem}") from None
    return named


def _json(text: str) -> Any:
    stripped = text.strip()
    if re.fullmatch(r"[A-Za-z_][\w.]*", stripped):
        return stripped  # Java's parser takes a bare type name, too
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise InvalidSchema("it is nested too deeply") from None
    except ValueError as problem:
        raise InvalidSchema(f"it is not JSON: {problem}") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


# Parsing


class _Parser:
    def __init__(self, named: dict[str, Type], *, is_new: bool) -> None:
        self._named = named
        self._is_new = is_new

    def parse(self, value: Any) -> Type:
        return self._type(value, "", "", 0)

    def _type(self, value: Any, namespace: str, path: str, depth: int) -> Type:
        if depth > DEPTH_MAX:
            raise InvalidSchema(f"it is nested more than {DEPTH_MAX} levels deep")
        if isinstance(value, str):
            return self._reference(value, namespace, path)
        if isinstance(value, list):
            return self._union(value, namespace, path, depth)
        if not isinstance(value, dict):
            raise InvalidSchema(f"{_at(path)}: {value!r:.100} is no schema: use a type's name, an object or a list for a union")
        kind = value.get("type")
        if isinstance(kind, dict | list):
            return self._type(kind, namespace, path, depth + 1)
        if not isinstance(kind, str):
            raise InvalidSchema(f"{_at(path)}: the attribute 'type' is missing")
        if kind in PRIMITIVES:
            return Type(kind, others={name: each for name, each in value.items() if name != "type"})
        if kind == "array" or kind == "map":
            part = "items" if kind == "array" else "values"
            if part not in value:
                raise InvalidSchema(f"{_at(path)}: the {kind} has no '{part}'")
            items = self._type(value[part], namespace, f"{path}/{part}", depth + 1)
            return Type(kind, items=items, others=_others(value, kind))
        if kind in NAMED:
            return self._named_type(kind, value, namespace, path, depth)
        return self._reference(kind, namespace, path)

    def _reference(self, name: str, namespace: str, path: str) -> Type:
        if name in PRIMITIVES:
            return Type(name)
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        found = self._named.get(full) or self._named.get(name)
        if found is None:
            raise InvalidSchema(f'{_at(path)}: type "{full}" is not defined')
        return found

    def _union(self, value: list[Any], namespace: str, path: str, depth: int) -> Type:
        branches = [self._type(each, namespace, f"{path}/{index}", depth + 1) for index, each in enumerate(value)]
        seen = set()
        for each in branches:
            if each.kind == "union":
                raise InvalidSchema(f"{_at(path)}: a union may not hold a union directly")
            label = each.name or each.kind
            if label in seen:
                raise InvalidSchema(f"{_at(path)}: the union has {label} twice")
            seen.add(label)
        return Type("union", branches=branches)

    def _named_type(self, kind: str, value: dict[str, Any], namespace: str, path: str, depth: int) -> Type:
        name = value.get("name")
        if not isinstance(name, str) or not name:
            raise InvalidSchema(f"{_at(path)}: the {kind} has no name")
        space = value.get("namespace")
        if "." in name:
            space, _, name = name.rpartition(".")
        elif not isinstance(space, str):
            space = namespace
        for part in [name, *(space.split(".") if space else [])]:
            if not _NAME.fullmatch(part):
                raise InvalidSchema(f"{_at(path)}: {part!r:.100} is no name: use letters, digits and _, not a digit first")
        full = f"{space}.{name}" if space else name
        if full in self._named:
            raise InvalidSchema(f'{_at(path)}: type "{full}" is defined twice')
        if full in PRIMITIVES:
            raise InvalidSchema(f"{_at(path)}: {full} is the name of a primitive type")
        doc = value.get("doc")
        found = Type(kind, full, doc if isinstance(doc, str) else None, others=_others(value, kind))
        found.aliases = [each if "." in each or not space else f"{space}.{each}" for each in _texts(value, "aliases", path)]
        self._named[full] = found
        if kind == "enum":
            self._enum(found, value, path)
        elif kind == "fixed":
            size = value.get("size")
            if isinstance(size, bool) or not isinstance(size, int) or size < 0:
                raise InvalidSchema(f"{_at(path)}: the size of {found.label} is {size!r}, and must be a whole number")
            found.size = size
        else:
            self._fields(found, value, space, path, depth)
        return found

    def _enum(self, found: Type, value: dict[str, Any], path: str) -> None:
        if not isinstance(value.get("symbols"), list):
            raise InvalidSchema(f"{_at(path)}: {found.label} has no list of symbols")
        found.symbols = _texts(value, "symbols", path)
        for each in found.symbols:
            if not _NAME.fullmatch(each):
                raise InvalidSchema(f"{_at(path)}: {each!r:.100} is no symbol: use letters, digits and _, not a digit first")
        if len(set(found.symbols)) != len(found.symbols):
            raise InvalidSchema(f"{_at(path)}: {found.label} has a symbol twice")
        if "default" in value:
            found.default = value["default"]
            if found.default not in found.symbols:
                raise InvalidSchema(f"{_at(path)}: the default {found.default!r:.100} is no symbol of {found.label}")

    def _fields(self, found: Type, value: dict[str, Any], space: str, path: str, depth: int) -> None:
        fields = value.get("fields")
        if not isinstance(fields, list):
            raise InvalidSchema(f"{_at(path)}: {found.label} has no list of fields")
        names = set()
        for index, each in enumerate(fields):
            place = f"{path}/fields/{index}"
            name = each.get("name") if isinstance(each, dict) else None
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise InvalidSchema(f"{_at(place)}: {name!r:.100} is no name of a field")
            if name in names:
                raise InvalidSchema(f"{_at(place)}: {found.label} has the field {name} twice")
            names.add(name)
            if "type" not in each:
                raise InvalidSchema(f"{_at(place)}: the field {name} of {found.label} has no type")
            order = each.get("order")
            if order is not None and str(order).lower() not in ("ascending", "descending", "ignore"):
                raise InvalidSchema(f"{_at(place)}: the order {order!r:.100} is not ascending, descending or ignore")
            doc = each.get("doc")
            made = Field(
                name,
                self._type(each["type"], space, f"{place}/type", depth + 1),
                each.get("default", NO_DEFAULT),
                doc if isinstance(doc, str) else None,
                None if order is None or str(order).lower() == "ascending" else str(order).lower(),
                _texts(each, "aliases", place),
                _others(each, "field"),
            )
            if self._is_new and made.default is not NO_DEFAULT and not _fits(made.type, made.default):
                shown = _compact(made.default)
                raise InvalidSchema(f"{_at(place)}: the default {shown:.100} of field {name} is no {made.type.label}")
            found.fields.append(made)


def _at(path: str) -> str:
    return f"at {path}" if path else "at /"


def _texts(value: dict[str, Any], name: str, path: str) -> list[str]:
    found = value.get(name) or []
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise InvalidSchema(f"{_at(path)}: '{name}' must be a list of strings")
    return found


def _others(value: dict[str, Any], kind: str) -> dict[str, Any]:
    known = _ATTRIBUTES["record" if kind == "error" else kind]
    return {name: each for name, each in value.items() if name not in known}


def _fits(kind: Type, value: Any) -> bool:
    """Whether a default belongs to a type. The default of a union belongs to any of its branches."""
    match kind.kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "int" | "long":
            bits = 31 if kind.kind == "int" else 63
            is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer() and not math.isinf(value))
            return is_whole and not isinstance(value, bool) and -(1 << bits) <= value < 1 << bits
        case "float" | "double":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "string":
            return isinstance(value, str)
        case "bytes" | "fixed":
            return isinstance(value, str) and all(ord(each) < 256 for each in value)
        case "enum":
            return isinstance(value, str) and value in kind.symbols
        case "array":
            assert kind.items is not None
            return isinstance(value, list) and all(_fits(kind.items, each) for each in value)
        case "map":
            assert kind.items is not None
            return isinstance(value, dict) and all(_fits(kind.items, each) for each in value.values())
        case "union":
            return any(_fits(each, value) for each in kind.branches)
    if not isinstance(value, dict):
        return False
    return all(
        _fits(each.type, value[each.name]) if each.name in value else each.default is not NO_DEFAULT for each in kind.fields
    )


# Printing


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _printed(kind: Type, space: str, known: set[str], *, is_normalized: bool = False) -> Any:
    """The JSON form. `known` has the full names that are written already; `space` is the enclosing namespace."""
    if kind.kind == "union":
        return [_printed(each, space, known, is_normalized=is_normalized) for each in kind.branches]
    own, _, short = kind.name.rpartition(".")
    if kind.is_named and kind.name in known:
        return short if own == space and not is_normalized else kind.name
    if kind.kind in PRIMITIVES and not kind.others:
        return kind.kind
    shown: dict[str, Any] = {}
    if is_normalized and kind.is_named:
        shown["name"] = kind.name
    shown["type"] = kind.kind
    if kind.is_named:
        known.add(kind.name)
        if not is_normalized:
            shown["name"] = short
            if own != space:
                shown["namespace"] = own
        if kind.doc is not None and not is_normalized:
            shown["doc"] = kind.doc
    if kind.kind in ("record", "error"):
        shown["fields"] = [_printed_field(each, own, known, is_normalized) for each in kind.fields]
    elif kind.kind == "enum":
        shown["symbols"] = kind.symbols
        if kind.default is not NO_DEFAULT and not is_normalized:
            shown["default"] = kind.default
    elif kind.kind == "fixed":
        shown["size"] = kind.size
    elif kind.items is not None:
        part = "items" if kind.kind == "array" else "values"
        shown[part] = _printed(kind.items, space, known, is_normalized=is_normalized)
    if is_normalized:
        aliases = sorted(kind.aliases)
        shown |= _normal_rest(kind.others, kind.doc, aliases, kind.default if kind.kind == "enum" else NO_DEFAULT, None)
    else:
        shown |= kind.others
        if kind.aliases:
            shown["aliases"] = [_relative(each, own) for each in kind.aliases]
    return shown


def _relative(name: str, space: str) -> str:
    own, _, short = name.rpartition(".")
    return short if own == space else name


def _printed_field(each: Field, space: str, known: set[str], is_normalized: bool) -> dict[str, Any]:
    shown = {"name": each.name, "type": _printed(each.type, space, known, is_normalized=is_normalized)}
    if is_normalized:
        return shown | _normal_rest(each.others, each.doc, sorted(each.aliases), each.default, each.order)
    if each.doc is not None:
        shown["doc"] = each.doc
    if each.default is not NO_DEFAULT:
        shown["default"] = each.default
    if each.order is not None:
        shown["order"] = each.order
    if each.aliases:
        shown["aliases"] = each.aliases
    return shown | each.others


def _normal_rest(
    others: dict[str, Any], doc: str | None, aliases: list[str], default: Any, order: str | None
) -> dict[str, Any]:
    rest = {name: others[name] for name in _FIRST_OF_OTHERS if name in others}
    if doc is not None:
        rest["doc"] = doc
    if aliases:
        rest["aliases"] = aliases
    if default is not NO_DEFAULT:
        rest["default"] = default
    if order is not None:
        rest["order"] = order
    return rest | {name: others[name] for name in sorted(others) if name not in rest}


# Comparing


class _Comparison:
    """Collects the differences of a reader and a writer. A pair that is being compared counts as equal: schemas may recurse."""

    def __init__(self) -> None:
        self._equal: dict[tuple[int, int], None] = {}
        """The pairs that were found equal, in their order."""
        self._unequal: set[tuple[int, int]] = set()
        self._open: set[tuple[int, int]] = set()
        """The pairs that are being compared. They count as equal: schemas may recurse."""

    def run(self, reader: Type, writer: Type) -> list[str]:
        found = []
        for each in self._differences(reader, writer, ""):
            found.append(each)
            if len(found) == _DIFFERENCES_MAX:
                break
        return found

    def _matches(self, reader: Type, writer: Type) -> bool:
        pair = (id(reader), id(writer))
        if pair in self._unequal and pair not in self._open:
            return False
        return next(self._differences(reader, writer, ""), None) is None

    def _differences(self, reader: Type, writer: Type, path: str) -> Iterator[str]:
        pair = (id(reader), id(writer))
        if not (reader.is_named and writer.is_named):
            yield from self._unlike(reader, writer, path)
        elif pair not in self._equal and pair not in self._open:
            before = len(self._equal)
            self._open.add(pair)
            try:
                for each in self._unlike(reader, writer, path):
                    self._unequal.add(pair)
                    yield each
            finally:  # the caller may stop at the first difference
                self._open.discard(pair)
                if (
                    pair in self._unequal
                ):  # what was found equal since may have been so only because this pair was taken for equal
                    while len(self._equal) > before:
                        self._equal.popitem()
                else:
                    self._equal[pair] = None

    def _unlike(self, reader: Type, writer: Type, path: str) -> Iterator[str]:
        if writer.kind == "union":
            for index, branch in enumerate(writer.branches):
                for text in self._differences(reader, branch, path if reader.kind == "union" else f"{path}/{index}"):
                    if reader.kind == "union":
                        yield text
                    else:
                        yield _told("MISSING_UNION_BRANCH", path, f"the other schema may have a {branch.label} here: {text}")
            return
        if reader.kind == "union":
            if not any(self._matches(each, writer) for each in reader.branches):
                labels = ", ".join(each.label for each in reader.branches) or "nothing"
                yield _told("MISSING_UNION_BRANCH", path, f"no branch of the union ({labels}) takes {writer.label}")
            return
        if reader.kind != writer.kind:
            if writer.kind not in PROMOTIONS.get(reader.kind, ()):
                yield _told("TYPE_MISMATCH", path, f"{reader.label} is expected, and the other schema has {writer.label}")
            return
        if reader.kind in ("array", "map"):
            assert reader.items is not None
            assert writer.items is not None
            yield from self._differences(
                reader.items, writer.items, f"{path}/{'items' if reader.kind == 'array' else 'values'}"
            )
        elif reader.is_named:
            if reader.name != writer.name and writer.name not in reader.aliases:
                yield _told("NAME_MISMATCH", f"{path}/name", f"{reader.label} is called {writer.name} in the other schema")
            elif reader.kind == "fixed" and reader.size != writer.size:
                text = f"{reader.label} has {reader.size} bytes, and {writer.size} in the other schema"
                yield _told("FIXED_SIZE_MISMATCH", f"{path}/size", text)
            elif reader.kind == "enum":
                missing = [each for each in writer.symbols if each not in reader.symbols]
                if missing and reader.default is NO_DEFAULT:
                    text = (
                        f"{reader.label} does not know the symbols {', '.join(missing)} of the other schema, and has no default"
                    )
                    yield _told("MISSING_ENUM_SYMBOLS", f"{path}/symbols", text)
            elif reader.kind in ("record", "error"):
                yield from self._fields(reader, writer, path)

    def _fields(self, reader: Type, writer: Type, path: str) -> Iterator[str]:
        written = {each.name: each for each in writer.fields}
        for index, each in enumerate(reader.fields):
            place = f"{path}/fields/{index}"
            other = next((written[name] for name in (each.name, *each.aliases) if name in written), None)
            if other is not None:
                yield from self._differences(each.type, other.type, f"{place}/type")
            elif each.default is NO_DEFAULT:
                text = f"field '{each.name}' of {reader.label} has no default, and the other schema does not have the field"
                yield _told("READER_FIELD_MISSING_DEFAULT_VALUE", place, text)


def _told(kind: str, path: str, text: str) -> str:
    return f"{kind} at {path or '/'}: {text}"
