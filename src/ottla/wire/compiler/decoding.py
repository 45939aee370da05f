"""Compiles the decoder of one message in one version.

`codec(buf, p=0)` returns the message and the position after it. In its source, `buf` is bytes or a bytearray (a memoryview is
copied once; views still point into the original), `p` the position, `end` the buffer's size. Lengths of strings and bytes are
not checked one by one: a wrong length moves `p` past `end`, and either the next read or the check at the end fails.

Counts are checked before anything is allocated: against the bytes that are left, and in requests, which may come from any
client, against `left`, the elements that a request may still have. Without that, a frame of 100 MB could hold structs of three
bytes each, and cost the broker gigabytes of memory and minutes.
"""

import struct
from collections.abc import Callable
from itertools import repeat
from typing import Any, Protocol

from ottla.errors import DecodeError
from ottla.ids import ZERO_UUID
from ottla.wire.binding import Binding
from ottla.wire.compiler.runtime import (
    CodecDeclined,
    array_structs,
    long_length,
    long_text_length,
    read_unknown_tags,
    read_uvarint,
)
from ottla.wire.compiler.source import Source
from ottla.wire.interpreter import REQUEST_ELEMENTS_MAX, decode, smallest_size, too_many_elements
from ottla.wire.schema.model import FIXED_FORMATS, FIXED_SIZES, FieldSchema, StructSchema

EXAMINED_ELEMENTS_MAX = 5_000
"""A request that cannot be decoded and has more elements than this is refused without naming the field at fault. The
interpreter, which would find it, is ten times slower and would block the loop."""


class Decoder(Protocol):
    """A compiled decoder."""

    def __call__(self, buf: bytes | bytearray | memoryview, p: int = 0, /) -> tuple[Any, int]: ...


def compile_decoder(binding: Binding, version: int, fallback: Callable[..., Any] = decode) -> Decoder:
    """The decoder of `version`. It calls `fallback` for what it does not handle."""
    binding.check_version(version)
    return _Compiler(binding, version, fallback).compile()


class _Compiler:
    def __init__(self, binding: Binding, version: int, fallback: Callable[..., Any]) -> None:
        self.binding = binding
        self.version = version
        self.is_flexible = binding.schema.is_flexible(version)
        self.is_request = binding.schema.kind == "request"
        self.pending: list[tuple[str, str]] = []  # fixed-size reads not yet written out: struct letter, assignment target
        self.source = Source(
            {
                "DECLINE_ERRORS": (struct.error, IndexError, ValueError),
                "CodecDeclined": CodecDeclined,
                "ZERO_UUID": ZERO_UUID,
                "long_length": long_length,
                "long_text_length": long_text_length,
                "new": object.__new__,
                "fallback": lambda buffer, position: fallback(binding, version, buffer, position),
                "read_unknown_tags": read_unknown_tags,
                "read_uvarint": read_uvarint,
                "repeat": repeat,
                "too_many": lambda: too_many_elements(binding.schema.name),
                "undecodable": lambda: undecodable(binding.schema.name, version),
            }
        )

    def compile(self) -> Decoder:
        source, schema = self.source, self.binding.schema
        source.line("source = buf")
        source.line("start = p")
        if self.is_request:
            source.line(f"left = {REQUEST_ELEMENTS_MAX}")
        with source.block("try:"):
            with source.block("if buf.__class__ is memoryview:"):
                source.line("buf = bytes(buf)")
            source.line("end = len(buf)")
            if any(field.is_hole for struct_ in (schema.root, *schema.structs.values()) for field in struct_.fields):
                source.line("view = memoryview(source)")
            message = self.struct(schema.root)
            with source.block("if p > end:"):
                source.line("raise CodecDeclined")
            source.line(f"return {message}, p")
        with source.block("except DECLINE_ERRORS:"):
            if self.is_request:
                with source.block(f"if left < {REQUEST_ELEMENTS_MAX - EXAMINED_ELEMENTS_MAX}:"):
                    source.line("raise undecodable() from None")
            else:
                source.line("pass")
        source.line("return fallback(source, start)")
        decoder: Decoder = source.compile("def codec(buf, p=0):", f"decode {schema.name} version {self.version}")
        return decoder

    def fixed(self, letter: str, target: str) -> None:
        self.pending.append((letter, target))

    def flush(self) -> None:
        """Write out the pending fixed-size reads as one call."""
        if not self.pending:
            return
        letters = [letter for letter, _ in self.pending]
        targets = ", ".join(target for _, target in self.pending)
        if letters == ["B"]:
            self.source.line(f"{targets} = buf[p]")
            self.source.line("p += 1")
        else:
            name, size = self.source.struct_call("U", letters)
            self.source.line(f"{targets}{',' if len(letters) == 1 else ''} = {name}(buf, p)")
            self.source.line(f"p += {size}")
        self.pending = []

    def struct(self, schema: StructSchema) -> str:
        """Read a struct into a new variable and return its name. No read is pending afterwards."""
        source = self.source
        value = source.name("o")
        cls = self.binding.classes[schema.name]
        source.line(f"{value} = new({source.constant(cls.__name__, cls)})")
        for field in schema.fields:
            if self.version not in field.versions or self.version in field.tagged:
                source.line(f"{value}.{field.attribute} = {self.default(field)}")
        source.line(f"{value}.unknown_tags = None")
        for field in schema.fields_in(self.version):
            self.field(field, f"{value}.{field.attribute}")
        if self.is_flexible:
            self.tagged(schema, value)
        self.flush()
        return value

    def default(self, field: FieldSchema) -> str:
        default = field.default()
        if isinstance(default, StructSchema):
            cls = self.binding.classes[default.name]
            return f"{self.source.constant(cls.__name__, cls)}()"
        return "ZERO_UUID" if default == ZERO_UUID else repr(default)

    def tagged(self, schema: StructSchema, value: str) -> None:
        source, fields = self.source, schema.tagged_in(self.version)
        count = source.name("t")
        self.fixed("B", count)
        self.flush()
        with source.block(f"if {count}:"):
            if not fields:
                source.line(f"{value}.unknown_tags, p = read_unknown_tags(buf, p, {count}, end)")
                self.count_elements(f"len({value}.unknown_tags)")
                return
            with source.block(f"if {count} > 127:"):
                source.line(f"{count}, p = long_length(buf, p, {count})")
            tag, stop = source.name("tag"), source.name("stop")
            with source.block(f"for _ in repeat(None, {count}):"):
                source.line(f"{tag}, p = read_uvarint(buf, p)")
                source.line(f"{stop}, p = read_uvarint(buf, p)")
                source.line(f"{stop} += p")
                with source.block(f"if {stop} > end:"):
                    source.line("raise CodecDeclined")
                for index, field in enumerate(fields):
                    with source.block(f"{'elif' if index else 'if'} {tag} == {field.tag}:"):
                        self.field(field, f"{value}.{field.attribute}")
                        self.flush()
                        with source.block(f"if p != {stop}:"):
                            source.line("raise CodecDeclined")
                with source.block("else:"):
                    source.line(
                        "raise CodecDeclined"
                    )  # a newer peer's field among known ones: the interpreter stores it in unknown_tags

    def field(self, field: FieldSchema, target: str) -> None:
        if field.is_array:
            self.array(field, target)
        elif field.struct is not None:
            self.struct_field(field, target)
        elif field.type in FIXED_FORMATS:
            self.fixed(FIXED_FORMATS[field.type], target)
        else:
            self.sized(field, target, is_nullable=self.version in field.nullable)

    def struct_field(self, field: FieldSchema, target: str) -> None:
        assert field.struct is not None
        source = self.source
        if self.version not in field.nullable:
            source.line(f"{target} = {self.struct(field.struct)}")
            return
        marker = source.name("n")
        is_tagged = self.version in field.tagged
        self.fixed("B" if is_tagged else "b", marker)
        self.flush()
        with source.block(f"if {marker} == 0:" if is_tagged else f"if {marker} < 0:"):
            source.line(f"{target} = None")
        if is_tagged:
            with source.block(f"elif {marker} > 127:"):
                source.line("raise CodecDeclined")
        with source.block("else:"):
            source.line(f"{target} = {self.struct(field.struct)}")

    def length(self, field: FieldSchema, letter: str) -> tuple[str, int]:
        """Read a length or count. Returns its variable, and 1 if that holds the length plus one, else 0. Smaller is null."""
        source = self.source
        length = source.name("n")
        flexible = self.is_flexible and field.flexible
        self.fixed("B" if flexible else letter, length)
        self.flush()
        if flexible:
            with source.block(f"if {length} > 127:"):
                if field.type == "records":
                    self.long_length_inline(length)
                else:
                    source.line(f"{length}, p = {'long_text_length' if letter == 'h' else 'long_length'}(buf, p, {length})")
        return length, 1 if flexible else 0

    def long_length_inline(self, length: str) -> None:
        """Varints of two and three bytes inline: the length of a record batch of up to 2 MB needs no call."""
        source = self.source
        source.line("b1 = buf[p]")
        with source.block("if b1 < 128:"):
            source.line(f"{length} += (b1 << 7) - 128")
            source.line("p += 1")
        with source.block("else:"):
            source.line("b2 = buf[p + 1]")
            with source.block("if b2 < 128:"):
                source.line(f"{length} += (b1 << 7) + (b2 << 14) - {128 + (128 << 7)}")
                source.line("p += 2")
            with source.block("else:"):
                source.line(f"{length}, p = long_length(buf, p, {length})")

    def sized(self, field: FieldSchema, target: str, is_nullable: bool) -> None:
        """A string, bytes or records."""
        source = self.source
        length, surplus = self.length(field, "h" if field.type == "string" else "i")
        with source.block(f"if {length} >= {surplus}:"):
            source.line(f"q = p + {length} - 1" if surplus else f"q = p + {length}")
            if field.type == "string":
                source.line(f"{target} = buf[p:q].decode()")
            elif field.is_hole:
                source.line(f"{target} = view[p:q]")
            else:
                source.line(f"{target} = bytes(buf[p:q])")
            source.line("p = q")
        with source.block("else:"):
            source.line(f"{target} = None" if is_nullable else "raise CodecDeclined")

    def array(self, field: FieldSchema, target: str) -> None:
        source = self.source
        count, surplus = self.length(field, "i")
        with source.block(f"if {count} >= {surplus}:"):
            if surplus:
                source.line(f"{count} -= 1")
            smallest = max(smallest_size(self.binding, field, self.version), 1)
            with source.block(f"if {count}{f' * {smallest}' if smallest > 1 else ''} > end - p:"):
                source.line("raise CodecDeclined")
            self.count_elements(count)
            if field.type in FIXED_FORMATS:
                letter = FIXED_FORMATS[field.type]
                ready = source.constant(f"A{letter}", array_structs(letter).unpackers)
                other = source.constant(f"AU{letter}", array_structs(letter).unpacker)
                source.line(f"{target} = list(({ready}[{count}] if {count} < 9 else {other}({count}))(buf, p))")
                source.line(f"p += {count} * {FIXED_SIZES[letter]}")
            else:
                self.elements(field, target, count)
        with source.block("else:"):
            source.line(f"{target} = None" if self.version in field.nullable else "raise CodecDeclined")

    def count_elements(self, count: str) -> None:
        if self.is_request:
            self.source.line(f"left -= {count}")
            with self.source.block("if left < 0:"):
                self.source.line("raise too_many()")

    def elements(self, field: FieldSchema, target: str, count: str) -> None:
        source = self.source
        items = source.name("a")
        source.line(f"{target} = {items} = []")
        with source.block(f"for _ in repeat(None, {count}):"):
            if field.struct is not None:
                source.line(f"{items}.append({self.struct(field.struct)})")
            else:
                element = source.name("e")
                self.sized(field, element, is_nullable=False)
                source.line(f"{items}.append({element})")


def undecodable(name: str, version: int) -> DecodeError:
    """The error for a request that is too large to search for the field at fault."""
    return DecodeError(f"{name} (version {version}) cannot be decoded, and has too many elements to say where it goes wrong")
