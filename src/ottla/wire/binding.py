"""Connects a message class to its schema: which class holds which struct. Parsed on first use and cached."""

from ottla.wire.base import Message, Struct, UnsupportedVersion
from ottla.wire.schema.model import FieldSchema, MessageSchema, StructSchema
from ottla.wire.schema.parse import parse_message


class Binding:
    """A message's schema together with the classes its structs are made of."""

    __slots__ = ("classes", "schema")

    def __init__(self, schema: MessageSchema, classes: dict[str, type[Struct]]) -> None:
        self.schema = schema
        self.classes = classes

    def new_default(self, field: FieldSchema) -> object:
        """The default of `field`; a new object where it is mutable."""
        default = field.default()
        return self.classes[default.name]() if isinstance(default, StructSchema) else default

    def check_version(self, version: int) -> None:
        """Raise `UnsupportedVersion` if the message does not have `version`."""
        versions = self.schema.versions
        if version not in versions:
            raise UnsupportedVersion(
                self.schema.name, f"there is no version {version}; the versions are {versions.low} to {versions.high}"
            )


_bindings: dict[type[Message], Binding] = {}


def binding_of(cls: type[Message]) -> Binding:
    """The binding of a message class; the first call parses its schema."""
    binding = _bindings.get(cls)
    if binding is None:
        schema = parse_message(cls.SCHEMA)
        classes: dict[str, type[Struct]] = dict(zip(schema.structs, cls.STRUCTS, strict=True))
        classes[schema.name] = cls
        binding = _bindings[cls] = Binding(schema, classes)
    return binding
