"""The request with the most elements of an API: as many as a request may have, in its outermost or its innermost array."""

from typing import Any

from tests.support.hostile import attacks

from ottla.wire.apis import APIS
from ottla.wire.binding import Binding, binding_of
from ottla.wire.schema.model import INTEGER_RANGES, FieldSchema, StructSchema

ELEMENTS = 60_000
TOPIC = "bystander"


def largest_request(name: str, shape: str, version: int | None = None) -> bytes:
    """A frame of the API `name`. `wide`: many topics (groups, resources) with nothing in them. `deep`: one with many partitions
    (members, settings). `repeated`: one topic over and over, each time with another partition.
    """
    api = next(api for api in APIS.values() if api.name == name)
    binding = binding_of(api.request_class)
    used = api.newest if version is None else version
    request = _struct(binding, binding.schema.root, used, shape)
    if name == "Produce":
        request.acks = -1  # else there would be no reply
    return attacks.frame(request, used)


def _struct(binding: Binding, schema: StructSchema, version: int, shape: str, number: int = 0, is_top: bool = True) -> Any:
    made: Any = binding.classes[schema.name]()
    is_first = True
    for field in schema.fields:
        if version not in field.versions:
            continue
        if not field.is_array:
            if field.type == "string":
                setattr(made, field.attribute, f"n{number}" if shape == "wide" else TOPIC)
            elif field.type in INTEGER_RANGES and field.type != "int8" and not is_top:
                setattr(made, field.attribute, number % 30_000)
        elif is_first:
            is_first = False
            is_inner = field.struct is None or not any(inner.is_array for inner in field.struct.fields)
            counts = {
                "wide": ELEMENTS if is_top else 0,
                "deep": ELEMENTS if is_inner else 1,
                "repeated": ELEMENTS // 2 if is_top else 1,
            }
            numbers = range(number, number + 1) if shape == "repeated" and not is_top else range(counts[shape])
            setattr(made, field.attribute, [_element(binding, field, version, shape, each) for each in numbers])
    return made


def _element(binding: Binding, field: FieldSchema, version: int, shape: str, number: int) -> Any:
    if field.struct is not None:
        return _struct(binding, field.struct, version, shape, number, is_top=False)
    if field.type == "string":
        return f"n{number}"
    if field.type in ("uuid", "bytes"):
        return bytes(16)
    return number % (30_000 if shape == "repeated" and field.type != "int8" else 100)
