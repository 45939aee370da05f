"""JSON Schema, drafts 4 to 2020-12: checked against its own draft, printed compactly, and compared.

A reader takes a writer's data if it is wider: bounds relaxed or gone, types and enumerations extended, properties no longer
required. Properties are compared by the content model: a closed object (`additionalProperties: false`) may get properties, an
open one may lose them. Under the policy LENIENT both may.

`$ref` leads into the schema itself or to a schema that it references; nothing is ever fetched.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from jsonschema import exceptions, validators

from ottla.schemas.languages import DEPTH_MAX, InvalidSchema, Parsed, Source

DEFAULT_DRAFT = "http://json-schema.org/draft-07/schema#"
TYPES = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})
STEPS_MAX = 50_000
_DIFFERENCES_MAX = 50
_NO_VALUE: Any = object()

Schema = Mapping[str, Any] | bool


def parse(source: Source) -> Parsed:
    """The texts to store."""
    schema = _loaded(source.text)
    document = _Document(source, schema)
    draft = schema.get("$schema", DEFAULT_DRAFT) if isinstance(schema, dict) else DEFAULT_DRAFT
    if not isinstance(draft, str):
        raise InvalidSchema(f"$schema is {draft!r:.100}, and must be the address of a draft")
    validator = validators.validator_for({"$schema": draft}, default=None)
    if validator is None:
        raise InvalidSchema(f"$schema {draft:.100} is no known draft: use draft-04 to draft-07, 2019-09 or 2020-12")
    try:
        validator.check_schema(schema)
    except exceptions.SchemaError as problem:
        where = "/".join(map(str, problem.absolute_path))
        raise InvalidSchema(f"at /{where}: {problem.message:.300}") from None
    document.check_references(schema, "", 0)
    return Parsed(_compact(schema), _compact(_sorted(schema)))


def differences(reader: Source, writer: Source, policy: str = "STRICT") -> list[str]:
    """Why JSON that is valid for `writer` may not be valid for `reader`."""
    new, old = _loaded(reader.text), _loaded(writer.text)
    comparison = _Comparison(_Document(reader, new), _Document(writer, old), policy == "LENIENT")
    found = []
    for each in comparison.differences(new, old, "", 0):
        found.append(each)
        if len(found) == _DIFFERENCES_MAX:
            break
    return found


def _loaded(text: str) -> Any:
    try:
        schema = json.loads(text)
    except RecursionError:
        raise InvalidSchema("it is nested too deeply") from None
    except ValueError as problem:
        raise InvalidSchema(f"it is not JSON: {problem}") from None
    if not isinstance(schema, dict | bool):
        raise InvalidSchema(f"a JSON schema is an object, true or false, and not a {type(schema).__name__}")
    return schema


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: sorted(each) if name == "required" and _is_texts(each) else _sorted(each)
            for name, each in sorted(value.items())
        }
    return [_sorted(each) for each in value] if isinstance(value, list) else value


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


class _Document:
    """A schema with those that it references, and where its `$ref`s lead."""

    def __init__(self, source: Source, root: Any) -> None:
        self._root = root
        self._places: dict[str, Any] = {}
        self._whole: dict[int, tuple[Any, Any]] = {}
        """Schemas with conditions beside their `$ref`, by the id of the schema: the same object for the same schema."""
        for each in source.imports:
            imported = _loaded(each.text)
            self._places[each.name] = imported
            if isinstance(imported, dict) and isinstance(own := imported.get("$id", imported.get("id")), str):
                self._places[own.rstrip("#")] = imported
        self._base = ""
        if isinstance(root, dict) and isinstance(own := root.get("$id", root.get("id")), str):
            self._base = own.rstrip("#")
            self._places[self._base] = root
        for schema in (root, *list(self._places.values())):
            self._collect_ids(schema, self._base, 0)

    def _collect_ids(self, value: Any, base: str, depth: int) -> None:
        if depth > DEPTH_MAX:
            raise InvalidSchema(f"it is nested more than {DEPTH_MAX} levels deep")
        if isinstance(value, dict):
            for name in ("$id", "$anchor", "id"):
                if isinstance(own := value.get(name), str):
                    self._places.setdefault(urljoin(base, f"#{own}" if name == "$anchor" else own).rstrip("#"), value)
            for each in value.values():
                self._collect_ids(each, base, depth + 1)
        elif isinstance(value, list):
            for each in value:
                self._collect_ids(each, base, depth + 1)

    def resolve(self, reference: str) -> Any:
        """What a `$ref` leads to."""
        if reference in self._places:
            return self._places[reference]
        address, fragment = urldefrag(reference)
        document = self._root if not address else self._places.get(address, self._places.get(urljoin(self._base, address)))
        if document is None:
            raise InvalidSchema(f"$ref {reference!r:.200} leads nowhere: add {address!r} to the references; nothing is fetched")
        if not fragment:
            return document
        if not fragment.startswith("/"):
            found = self._places.get(urljoin(self._base, f"#{fragment}"), self._places.get(f"#{fragment}"))
            if found is None:
                raise InvalidSchema(f"$ref {reference!r:.200} leads nowhere: there is no anchor {fragment}")
            return found
        for step in fragment[1:].split("/"):
            name = unquote(step).replace("~1", "/").replace("~0", "~")
            try:
                document = document[int(name)] if isinstance(document, list) else document[name]
            except (KeyError, IndexError, ValueError, TypeError):
                raise InvalidSchema(f"$ref {reference!r:.200} leads nowhere: there is no {name!r}") from None
        return document

    def followed(self, schema: Any) -> Any:
        """A schema behind its references."""
        for _ in range(DEPTH_MAX):
            if not isinstance(schema, dict) or not isinstance(reference := schema.get("$ref"), str):
                return schema
            target = self.resolve(reference)
            beside = {
                name: each for name, each in schema.items() if name not in ("$ref", "$schema", "$id", "definitions", "$defs")
            }
            beside = {name: each for name, each in beside.items() if name in _KEYWORDS}
            if beside and isinstance(target, dict):
                return self._whole.setdefault(id(schema), (schema, {"allOf": [target, beside]}))[1]
            schema = target
        raise InvalidSchema("its references lead in a circle")

    def check_references(self, value: Any, path: str, depth: int) -> None:
        """Raise if a `$ref` leads nowhere, or back to itself."""
        if isinstance(value, dict):
            if isinstance(reference := value.get("$ref"), str) and "draft" not in urldefrag(reference)[0]:
                self.followed(value)
            for name, each in value.items():
                if name not in ("enum", "const", "default", "examples"):
                    self.check_references(each, f"{path}/{name}", depth + 1)
        elif isinstance(value, list):
            for each in value:
                self.check_references(each, path, depth + 1)


_BOUNDS = (
    ("minLength", "maxLength", "string"),
    ("minimum", "maximum", "number"),
    ("exclusiveMinimum", "exclusiveMaximum", "number"),
    ("minItems", "maxItems", "array"),
    ("minProperties", "maxProperties", "object"),
)
_KEYWORDS = frozenset(
    {
        *("type", "enum", "const", "allOf", "anyOf", "oneOf", "not", "pattern", "multipleOf", "items", "additionalItems"),
        *("prefixItems", "uniqueItems", "contains", "properties", "patternProperties", "additionalProperties", "required"),
        *("dependencies", "dependentRequired", "dependentSchemas", "propertyNames", "if", "then", "else"),
        *(name for low, high, _ in _BOUNDS for name in (low, high)),
    }
)
_OPAQUE = ("dependencies", "dependentRequired", "dependentSchemas", "propertyNames", "contains", "if", "then", "else")
"""Compared for equality alone."""


class _Comparison:
    def __init__(self, new: _Document, old: _Document, is_lenient: bool) -> None:
        self._new = new
        self._old = old
        self._is_lenient = is_lenient
        self._fitting: dict[tuple[int, int], None] = {}
        """The pairs that were found to fit, in their order."""
        self._unfit: set[tuple[int, int]] = set()
        self._open: set[tuple[int, int]] = set()
        """The pairs that are being compared. They count as fitting: schemas may recurse."""
        self._kept: list[Any] = []
        """Keeps the schemas alive whose ids are in the pairs."""
        self._steps = 0

    def _fits(self, new: Any, old: Any, depth: int) -> bool:
        """Whether everything that `old` takes, `new` takes."""
        new, old = self._new.followed(new), self._old.followed(old)
        pair = (id(new), id(old))
        if pair in self._unfit and pair not in self._open:
            return False
        return next(self.differences(new, old, "", depth), None) is None

    def differences(self, new: Any, old: Any, path: str, depth: int) -> Iterator[str]:
        self._steps += 1
        if self._steps > STEPS_MAX or depth > DEPTH_MAX:
            raise InvalidSchema("it is too complex to compare: fewer nested allOf, anyOf and oneOf help")
        new, old = self._new.followed(new), self._old.followed(old)
        if new is True or new == {} or old is False or (isinstance(old, dict) and old.get("not") in (True, {})):
            return
        if new is False or old is True:
            old = {} if old is True else old
            if new is False:
                yield _told("TYPE_NARROWED", path, "nothing is allowed here any more")
                return
        pair = (id(new), id(old))
        if pair in self._open or pair in self._fitting:
            return
        self._kept += [new, old]
        before = len(self._fitting)
        self._open.add(pair)
        try:
            for each in self._unlike(new, old, path, depth + 1):
                self._unfit.add(pair)
                yield each
        finally:  # the caller may stop at the first difference
            self._open.discard(pair)
            if pair in self._unfit:  # what was found to fit since may do so only because this pair was taken to fit
                while len(self._fitting) > before:
                    self._fitting.popitem()
            else:
                self._fitting[pair] = None

    def _unlike(self, new: Any, old: Any, path: str, depth: int) -> Iterator[str]:
        if _branches(old) is not None:
            kind, branches = _branches(old)  # type: ignore[misc]
            rest = _without(old, kind)
            yield from self._old_branches(new, kind, branches, rest, path, depth)
            return
        yield from self._plain(new, old, path, depth)
        for kind in ("anyOf", "oneOf"):
            if kind in new and not any(self._fits(each, old, depth) for each in new[kind]):
                yield _told("COMBINED_TYPE_SUBSCHEMAS_CHANGED", f"{path}/{kind}", f"what was allowed fits no branch of {kind}")
        for index, part in enumerate(new.get("allOf", ())):
            candidates = [old, *old.get("allOf", ())]
            if not any(self._fits(part, each, depth) for each in candidates):
                first = next(self.differences(part, old, f"{path}/allOf/{index}", depth), "")
                yield first or _told("PRODUCT_TYPE_EXTENDED", f"{path}/allOf/{index}", "a further condition was added")
        if "not" in new:
            inverse = _Comparison(self._old, self._new, self._is_lenient)
            inverse._steps = self._steps
            if "not" not in old or not inverse._fits(old["not"], new["not"], depth):
                yield _told("NOT_TYPE_EXTENDED", f"{path}/not", "more is excluded by 'not'")
            self._steps = inverse._steps
        for name in _OPAQUE:
            if name in new and new[name] != old.get(name, _NO_VALUE):
                yield _told("CONDITION_CHANGED", f"{path}/{name}", f"'{name}' was {'changed' if name in old else 'added'}")

    def _old_branches(
        self, new: Any, kind: str, branches: list[Any], rest: dict[str, Any], path: str, depth: int
    ) -> Iterator[str]:
        """Data of `old` is in one of its branches: each must fit."""
        for index, branch in enumerate(branches):
            combined = {"allOf": [rest, branch]} if rest else branch
            targets = [new]
            for own in ("anyOf", "oneOf"):
                if own in new and not _without(new, own):
                    targets += new[own]
            if any(self._fits(each, branch, depth) for each in targets):
                continue
            if rest and any(self._fits(each, combined, depth) for each in targets):
                continue
            why = next(self.differences(new, branch, f"{path}/{kind}/{index}", depth), "")
            yield why or _told("SUM_TYPE_NARROWED", f"{path}/{kind}/{index}", "this branch is not allowed any more")

    def _plain(self, new: dict[str, Any], old: dict[str, Any], path: str, depth: int) -> Iterator[str]:
        old = _merged(old, self._old)
        if "enum" in new or "const" in new:
            allowed, before = _values(new), _values(old)
            if before is None:
                yield _told("ENUM_ARRAY_NARROWED", f"{path}/enum", "an enumeration was added")
            elif gone := [each for each in before if not _is_in(each, allowed or [])]:
                shown = ", ".join(_compact(each) for each in gone[:5])
                yield _told(
                    "ENUM_ARRAY_NARROWED", f"{path}/enum", f"{shown} {'is' if len(gone) == 1 else 'are'} not allowed any more"
                )
            return
        before = _values(old)
        types, old_types = _types(new), _types(old)
        if before is not None:
            old_types = frozenset().union(*(_types_of(each) for each in before)) & old_types
        lost = {each for each in old_types if each not in types and not (each == "integer" and "number" in types)}
        if lost:
            had, has = ", ".join(sorted(old_types)), ", ".join(sorted(types))
            yield _told(
                "TYPE_NARROWED" if lost != old_types else "TYPE_CHANGED", f"{path}/type", f"{had} was allowed, and now {has}"
            )
            if lost == old_types:
                return
        yield from self._bounds(new, old, old_types, path)
        if "array" in old_types:
            yield from self._arrays(new, old, path, depth)
        if "object" in old_types:
            yield from self._objects(new, old, path, depth)

    def _bounds(self, new: dict[str, Any], old: dict[str, Any], types: frozenset[str], path: str) -> Iterator[str]:
        for low, high, kind in _BOUNDS:
            if kind not in types and not (kind == "number" and "integer" in types):
                continue
            for name, is_low in ((low, True), (high, False)):
                bound, before = new.get(name), old.get(name)
                if isinstance(bound, bool):  # draft 4
                    if bound and not before:
                        yield _told(f"{name.upper()}_ADDED", f"{path}/{name}", f"'{name}' was added")
                    continue
                if bound is None or (is_low and name in ("minLength", "minItems", "minProperties") and bound == 0):
                    continue
                if before is None or isinstance(before, bool):
                    yield _told(f"{_upper(name)}_ADDED", f"{path}/{name}", f"'{name}' {bound} was added")
                elif bound > before if is_low else bound < before:
                    word = "INCREASED" if is_low else "DECREASED"
                    yield _told(f"{_upper(name)}_{word}", f"{path}/{name}", f"'{name}' was {before}, and is {bound}")
        if "string" in types and "pattern" in new and new["pattern"] != old.get("pattern"):
            word = "changed" if "pattern" in old else "added"
            yield _told(f"PATTERN_{word.upper()}", f"{path}/pattern", f"the pattern was {word}: {new['pattern']!r:.100}")
        if "multipleOf" in new and ({"number", "integer"} & types):
            step, before = new["multipleOf"], old.get("multipleOf")
            if before is None:
                yield _told("MULTIPLE_OF_ADDED", f"{path}/multipleOf", f"numbers must be multiples of {step} now")
            elif before % step:
                yield _told("MULTIPLE_OF_CHANGED", f"{path}/multipleOf", f"'multipleOf' was {before}, and is {step}")

    def _arrays(self, new: dict[str, Any], old: dict[str, Any], path: str, depth: int) -> Iterator[str]:
        if new.get("uniqueItems") and not old.get("uniqueItems"):
            yield _told("UNIQUE_ITEMS_ADDED", f"{path}/uniqueItems", "items must be unique now")
        firsts, rest = _items(new)
        old_firsts, old_rest = _items(old)
        for index in range(max(len(firsts), len(old_firsts))):
            own = firsts[index] if index < len(firsts) else rest
            before = old_firsts[index] if index < len(old_firsts) else old_rest
            yield from self.differences(own, before, f"{path}/items/{index}", depth)
        yield from self.differences(rest, old_rest, f"{path}/items", depth)

    def _objects(self, new: dict[str, Any], old: dict[str, Any], path: str, depth: int) -> Iterator[str]:
        properties, before = new.get("properties", {}), old.get("properties", {})
        added = set(_required(new)) - set(_required(old))
        for name in sorted(added):
            own = self._new.followed(properties.get(name, {}))
            if not (isinstance(own, dict) and "default" in own):
                text = f"property '{name}' is required now, and has no default"
                yield _told("REQUIRED_ATTRIBUTE_ADDED", f"{path}/required/{name}", text)
        for name, own in properties.items():
            place = f"{path}/properties/{name}"
            if name in before:
                yield from self.differences(own, before[name], place, depth)
                continue
            matching = _matching(old, name)
            for other in matching:
                if self._is_lenient and other is True:
                    continue
                if other is True and own not in (True, {}):
                    text = f"property '{name}' was added, and objects could have it with any value before"
                    yield _told("PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", place, text)
                else:
                    yield from self.differences(own, other, place, depth)
        for name, other in before.items():
            if name in properties:
                continue
            place = f"{path}/properties/{name}"
            for own in _matching(new, name):
                if own is False and not self._is_lenient:
                    if self._old.followed(other) is not False:
                        text = f"property '{name}' was removed, and no other properties are allowed"
                        yield _told("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", place, text)
                elif own is not False:
                    yield from self.differences(own, other, place, depth)
        for pattern, own in new.get("patternProperties", {}).items():
            other = old.get("patternProperties", {}).get(pattern, old.get("additionalProperties", True))
            yield from self.differences(own, other, f"{path}/patternProperties/{pattern}", depth)
        for pattern, other in old.get("patternProperties", {}).items():
            if pattern not in new.get("patternProperties", {}):
                yield from self.differences(
                    new.get("additionalProperties", True), other, f"{path}/patternProperties/{pattern}", depth
                )
        own, other = new.get("additionalProperties", True), old.get("additionalProperties", True)
        if own is False and other is not False:
            if not self._is_lenient:
                text = "other properties were allowed, and are not any more"
                yield _told("ADDITIONAL_PROPERTIES_REMOVED", f"{path}/additionalProperties", text)
        else:
            yield from self.differences(own, other, f"{path}/additionalProperties", depth)


def _told(kind: str, path: str, text: str) -> str:
    return f"{kind} at #{path or '/'}: {text}"


def _upper(name: str) -> str:
    return "".join(f"_{each}" if each.isupper() else each.upper() for each in name)


def _branches(schema: dict[str, Any]) -> tuple[str, list[Any]] | None:
    for kind in ("anyOf", "oneOf"):
        if isinstance(schema.get(kind), list):
            return kind, schema[kind]
    return None


def _without(schema: dict[str, Any], name: str) -> dict[str, Any]:
    return {each: value for each, value in schema.items() if each != name and each in _KEYWORDS}


def _merged(schema: dict[str, Any], document: _Document) -> dict[str, Any]:
    """A schema with the plain conditions of its `allOf`, where it has none itself: all of them hold for its data."""
    merged = dict(schema)
    for part in schema.get("allOf", ()):
        part = document.followed(part)
        if isinstance(part, dict):
            part = _merged(part, document)
            for name, value in part.items():
                if name == "properties" and isinstance(merged.get(name), dict):
                    merged[name] = value | merged[name]
                elif name == "required" and isinstance(merged.get(name), list):
                    merged[name] = sorted({*merged[name], *value})
                elif name == "additionalProperties" and value is False:
                    continue  # it closes the part's own properties, not those of the whole
                else:
                    merged.setdefault(name, value)
    return merged


def _values(schema: dict[str, Any]) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    return schema.get("enum")


def _is_in(value: Any, many: list[Any]) -> bool:
    return any(value == each and (type(value) is bool) == (type(each) is bool) for each in many)


def _types(schema: dict[str, Any]) -> frozenset[str]:
    given = schema.get("type")
    if given is None:
        return TYPES - {"integer"}
    return frozenset([given] if isinstance(given, str) else given)


def _types_of(value: Any) -> frozenset[str]:
    if value is None:
        return frozenset({"null"})
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return frozenset({kinds[type(value)], "number"} if type(value) is int else {kinds[type(value)]})


def _items(schema: dict[str, Any]) -> tuple[list[Any], Any]:
    """The schemas of the first items, and of the others."""
    items = schema.get("items", True)
    if isinstance(schema.get("prefixItems"), list):
        return schema["prefixItems"], items
    if isinstance(items, list):
        return items, schema.get("additionalItems", True)
    return [], items


def _required(schema: dict[str, Any]) -> list[str]:
    required = schema.get("required")
    return required if isinstance(required, list) else []


def _matching(schema: dict[str, Any], name: str) -> list[Any]:
    """What a schema says of a property that it does not name: by its patterns, else by `additionalProperties`."""
    import re2

    found = []
    for pattern, each in schema.get("patternProperties", {}).items():
        try:
            if re2.search(pattern, name):
                found.append(each)
        except re2.error:
            found.append(False)
    return found or [schema.get("additionalProperties", True)]
