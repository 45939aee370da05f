"""The schema table (*.txt) and its reading: text to plain objects. Nothing here encodes or decodes."""

from ottla.wire.schema.model import FieldSchema, MessageSchema, StructSchema, Versions
from ottla.wire.schema.parse import SchemaError, parse_message, parse_table

__all__ = ["FieldSchema", "MessageSchema", "SchemaError", "StructSchema", "Versions", "parse_message", "parse_table"]
