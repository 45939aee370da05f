"""Every message of the schema table, and arbitrary messages for Hypothesis."""

import importlib
import pkgutil
from functools import cache
from typing import Any

from hypothesis import strategies as st

import ottla.wire.messages
from ottla.wire.base import Message, Struct
from ottla.wire.binding import Binding, binding_of
from ottla.wire.interpreter import is_default
from ottla.wire.schema.model import INTEGER_RANGES, FieldSchema, StructSchema

TEXTS = st.one_of(st.text(max_size=6), st.sampled_from(["", "topic-ä", "𝕫" * 3, "x" * 126, "x" * 127, "y" * 200]))
BYTES = st.one_of(st.binary(max_size=6), st.sampled_from([b"", b"\x00" * 126, b"\x01" * 127, b"\x02" * 300]))


@cache
def all_messages() -> tuple[type[Message], ...]:
    """Every generated message class."""
    found = []
    for module_info in pkgutil.iter_modules(ottla.wire.messages.__path__):
        module = importlib.import_module(f"ottla.wire.messages.{module_info.name}")
        found += [
            value
            for value in vars(module).values()
            if isinstance(value, type) and issubclass(value, Message) and value.__module__ == module.__name__
        ]
    return tuple(found)


def versions_of(cls: type[Message]) -> range:
    versions = binding_of(cls).schema.versions
    return range(versions.low, versions.high + 1)


@cache
def messages(cls: type[Message], version: int) -> st.SearchStrategy[Message]:
    """Messages of one class that `version` can carry without loss."""
    binding = binding_of(cls)
    return _structs(binding, binding.schema.root, version)  # type: ignore[return-value]  # the root of a message is a message


def _structs(binding: Binding, schema: StructSchema, version: int) -> st.SearchStrategy[Struct]:
    cls = binding.classes[schema.name]
    fields = {field.attribute: _field(binding, field, version) for field in schema.fields if version in field.versions}
    tags = st.none()
    if binding.schema.is_flexible(version):
        numbers = st.integers(min_value=1000, max_value=2**31)
        tags = st.none() | st.lists(st.tuples(numbers, BYTES), min_size=1, max_size=2, unique_by=lambda pair: pair[0])

    def build(values: dict[str, Any], unknown: list[tuple[int, bytes]] | None) -> Struct:
        struct = cls(**values)
        struct.unknown_tags = sorted(unknown) if unknown else None
        return struct

    return st.builds(build, st.fixed_dictionaries(fields), tags)


def _field(binding: Binding, field: FieldSchema, version: int) -> st.SearchStrategy[Any]:
    value = _value(binding, field, version)
    if field.is_array:
        value = (
            st.lists(value, max_size=3) if field.struct or field.type in ("string", "uuid") else st.lists(value, max_size=12)
        )
    if version in field.nullable:
        value = st.none() | value
    if field.absent_as_none:  # a struct that equals its default comes back as None
        value = st.none() | value.filter(lambda struct: not is_default(binding, field, struct))
    return value


def _value(binding: Binding, field: FieldSchema, version: int) -> st.SearchStrategy[Any]:
    if field.struct is not None:
        return _structs(binding, field.struct, version)
    if field.type in INTEGER_RANGES:
        low, high = INTEGER_RANGES[field.type]
        return st.integers(low, high) | st.just(field.default()) if not field.is_array else st.integers(low, high)
    return {
        "bool": st.booleans(),
        "float64": st.floats(allow_nan=False),
        "string": TEXTS,
        "bytes": BYTES,
        "records": BYTES,
        "uuid": st.binary(min_size=16, max_size=16),
    }[field.type]
