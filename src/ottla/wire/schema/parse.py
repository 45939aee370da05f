"""Parses the schema table: text to `MessageSchema` objects.

The head of every schema/*.txt file describes the grammar. In addition, the parser clips all version ranges to those of their
message, and leaves out a field that no valid version has.
"""

from ottla.errors import OttlaError
from ottla.wire.schema.model import (
    FIXED_FORMATS,
    NEWEST,
    NO_VERSIONS,
    FieldSchema,
    MessageSchema,
    StructSchema,
    Versions,
)

_PLAIN_TYPES = frozenset(FIXED_FORMATS) | {"string", "bytes", "records"}


class SchemaError(OttlaError):
    """The schema table breaks its own grammar."""


def parse_table(text: str) -> dict[str, str]:
    """Every message of a schema file: its name to the lines that describe it, in file order."""
    blocks = (block.strip("\n") for block in text.split("\n\n"))
    lines = ("\n".join(line for line in block.split("\n") if not line.startswith("#")) for block in blocks)
    return {block.split(" ", 1)[0]: block for block in lines if block}


def parse_message(text: str) -> MessageSchema:
    """One message from its lines."""
    head, *lines = text.strip("\n").split("\n")
    message = _parse_head(head)
    open_structs = [message.root]
    for line in lines:
        words = line.split()
        depth = (len(line) - len(line.lstrip())) // 2
        if not 1 <= depth <= len(open_structs) or len(words) < 3:
            raise SchemaError(f"{message.name}: cannot read the line {line!r}: expected NAME TYPE VERSIONS")
        del open_structs[depth:]
        if not open_structs[-1].name:
            raise SchemaError(f"{message.name}: the line {line!r} is below a field that is not a struct")
        open_structs.append(_parse_line(message, open_structs[-1], words))
    _resolve(message)
    return message


def _parse_head(line: str) -> MessageSchema:
    name, *words = line.split()
    message = MessageSchema(name)
    for word in words:
        label, _, value = word.partition("=")
        match label:
            case "key":
                message.key = int(value)
            case "type":
                message.kind = value
            case "listeners":
                message.listeners = tuple(value.split(","))
            case "versions":
                message.versions = parse_versions(value)
            case "flexible":
                message.flexible = parse_versions(value)
            case "latest-unstable":
                message.is_latest_unstable = True
            case _:
                raise SchemaError(f"{name}: unknown word {word!r} in a message's head")
    message.flexible = message.flexible.clip(message.versions)
    return message


def _parse_line(message: MessageSchema, parent: StructSchema, words: list[str]) -> StructSchema:
    """Add one field or struct line. Returns the struct that lines indented below it belong to."""
    if words[0] == "struct":
        return message.structs.setdefault(words[1], StructSchema(words[1]))
    field = _parse_field(message, words)
    if not field.versions.is_empty:
        parent.fields.append(field)
    if field.type in _PLAIN_TYPES:
        return StructSchema("")  # without a name: no indented line may follow
    return message.structs.setdefault(field.type, StructSchema(field.type))


def _parse_field(message: MessageSchema, words: list[str]) -> FieldSchema:
    field = FieldSchema(words[0], words[1], parse_versions(words[2]).clip(message.versions))
    for word in words[3:]:
        label, _, value = word.partition("=")
        match label:
            case "nullable":
                field.nullable = parse_versions(value).clip(field.versions)
            case "tag":
                tag, _, versions = value.partition("@")
                field.tag = int(tag)
                field.tagged = parse_versions(versions).clip(field.versions)
            case "default":
                field.written_default = value
            case "key":
                field.is_key = True
            case "ignorable":
                field.ignorable = True
            case "entity":
                field.entity = value
            case "zerocopy":
                field.zerocopy = True
            case "flexible" if value == "none":
                field.flexible = False
            case _:
                raise SchemaError(f"{message.name}.{field.name}: unknown word {word!r}")
    return field


def _resolve(message: MessageSchema) -> None:
    """Point every field of a struct type at its struct, and drop structs that no valid version uses."""
    used: dict[str, StructSchema] = {}

    def visit(struct: StructSchema) -> None:
        for field in struct.fields:
            if field.type in _PLAIN_TYPES:
                continue
            field.struct = message.structs[field.type]
            if not field.struct.fields:
                raise SchemaError(f"{message.name}: the struct {field.type} is used, but no valid version has a field of it")
            if field.type not in used:
                used[field.type] = field.struct
                visit(field.struct)

    visit(message.root)
    message.structs = used


def parse_versions(text: str) -> Versions:
    """`none`, `3`, `3-7` or `3+`."""
    if text == "none":
        return NO_VERSIONS
    if text.endswith("+"):
        return Versions(int(text[:-1]), NEWEST)
    low, _, high = text.partition("-")
    return Versions(int(low), int(high or low))
