"""Messages as JSON, in the shape Kafka's own tools print: camel-case names, bytes in base64, UUIDs as text.

The output holds the fields of the given version. Tagged fields at their default and unknown tagged fields are left out.
`records` fields show only their size, as `…SizeInBytes`.
"""

import base64
from typing import Any

from ottla.ids import Uuid, uuid_text
from ottla.wire.base import Message, Struct
from ottla.wire.binding import Binding, binding_of
from ottla.wire.interpreter import is_default
from ottla.wire.schema.model import FieldSchema, StructSchema


def to_json(message: Message, version: int) -> dict[str, Any]:
    """What `json.dumps` can print: the fields that `message` has in `version`."""
    binding = binding_of(message.__class__)
    binding.check_version(version)
    return _struct(binding, binding.schema.root, message, version)


def _struct(binding: Binding, schema: StructSchema, value: Struct, version: int) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    for field in schema.fields:
        content = getattr(value, field.attribute)
        if version not in field.versions or (version in field.tagged and is_default(binding, field, content)):
            continue
        name = field.name[0].lower() + field.name[1:]
        if field.type == "records" and content is not None:
            shown[f"{name}SizeInBytes"] = len(content)
        else:
            shown[name] = _field(binding, field, content, version)
    return shown


def _field(binding: Binding, field: FieldSchema, content: Any, version: int) -> Any:
    if content is None:
        return None
    if field.is_array:
        return [_value(binding, field, each, version) for each in content]
    return _value(binding, field, content, version)


def _value(binding: Binding, field: FieldSchema, content: Any, version: int) -> Any:
    if field.struct is not None:
        return _struct(binding, field.struct, content, version)
    match field.type:
        case "uuid":
            return uuid_text(Uuid(content))
        case "bytes":
            return base64.b64encode(content).decode("ascii")
    return content
