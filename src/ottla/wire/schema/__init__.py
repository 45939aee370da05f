"""The schema table (*.txt) and its parser, which turns it into plain objects. Nothing here encodes or decodes messages."""

from ottla.wire.schema.model import FieldSchema, MessageSchema, StructSchema, Versions
from ottla.wire.schema.parse import SchemaError, parse_message, parse_table

__all__ = ["FieldSchema", "MessageSchema", "SchemaError", "StructSchema", "Versions", "parse_message", "parse_table"]
