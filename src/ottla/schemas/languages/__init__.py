"""The languages that schemas are written in. Each module has `parse` and `differences`, pure functions of texts.

`parse(source)` returns the texts to store, or raises `InvalidSchema`. `differences(reader, writer)` says in sentences why data
of `writer` cannot be read with `reader`; an empty list means that it can. Texts come from strangers: both are called in worker
processes with a time limit (`work.py`), and raise `InvalidSchema` for what is too deep or too large.
"""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

MODULES = {"AVRO": "avro", "JSON": "json_schema", "PROTOBUF": "protobuf"}
"""The module of each schema type; imported when a schema of the type is parsed."""

TEXT_BYTES_MAX = 1_000_000
DEPTH_MAX = 100
REFERENCES_MAX = 1_000


class InvalidSchema(ValueError):
    """A schema that cannot be parsed: the text says where and why."""


class Imported(NamedTuple):
    """A schema that another one references: the name it is imported by, where it is stored, and its own text."""

    name: str
    subject: str
    version: int
    text: str


class Source(NamedTuple):
    """A schema's text with everything it references, directly or not; a schema comes after those that it references itself."""

    kind: str
    text: str
    imports: tuple[Imported, ...] = ()


class Parsed(NamedTuple):
    """What is stored of a schema: its text as parsed and printed again, and in the form for `normalize`."""

    canonical: str
    normalized: str


def parse(source: Source) -> Parsed:
    """Parse a schema of any type."""
    found: Parsed = _module(source.kind).parse(source)
    return found


def differences(reader: Source, writer: Source, policy: str = "STRICT") -> list[str]:
    """Why data of `writer` cannot be read with `reader`, in sentences. `policy` matters for JSON Schema alone."""
    if reader.kind != writer.kind:
        return [f"the schema type is {reader.kind}, and that of the other schema {writer.kind}"]
    found: list[str] = _module(reader.kind).differences(reader, writer, policy)
    return found


def _module(kind: str):  # type: ignore[no-untyped-def]  # a module
    return import_module(f"ottla.schemas.languages.{MODULES[kind]}")
