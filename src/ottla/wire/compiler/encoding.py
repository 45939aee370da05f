"""Compiles the encoder of one message in one version.

`codec(m, head=b"")` returns the parts of the message with `head` in front of the first. In its source, `out` collects pieces,
which are joined at the end and before each `records` value. The compiler keeps fixed-size values in `pending` until a value of
variable size follows, and packs its length in the same `struct` call. It keeps pieces in `pieces` until the control flow
branches, so that one statement writes most structs. `struct` itself checks the ranges of numbers.
"""

from collections.abc import Callable
from typing import Any, Protocol

from ottla.ids import ZERO_UUID
from ottla.wire.base import Message, Part
from ottla.wire.binding import Binding
from ottla.wire.compiler.runtime import CodecDeclined, array_structs, encode_text_length
from ottla.wire.compiler.source import Source
from ottla.wire.interpreter import encode
from ottla.wire.schema.model import FIXED_FORMATS, FieldSchema, StructSchema
from ottla.wire.varint import ONE_BYTE, encode_uvarint


class Encoder(Protocol):
    """A compiled encoder."""

    def __call__(self, message: Any, head: bytes = b"", /) -> list[Part]: ...


def compile_encoder(binding: Binding, version: int, fallback: Callable[..., list[Part]] = encode) -> Encoder:
    """The encoder of `version`. It calls `fallback` for what it does not handle."""
    binding.check_version(version)
    return _Compiler(binding, version, fallback).compile()


class _Compiler:
    def __init__(self, binding: Binding, version: int, fallback: Callable[..., list[Part]]) -> None:
        self.binding = binding
        self.version = version
        self.is_flexible = binding.schema.is_flexible(version)
        self.pending: list[tuple[str, str]] = []  # fixed-size values not yet in a piece: struct letter, expression
        self.pieces: list[str] = []  # expressions of pieces not yet appended to `out`
        structs = (binding.schema.root, *binding.schema.structs.values())
        self.has_holes = any(
            field.type == "records" and version in field.versions for struct in structs for field in struct.fields
        )

        def recover(message: Message, head: bytes) -> list[Part]:
            return fallback(binding, version, message, head)

        self.source = Source(
            {
                "ONE_BYTE": ONE_BYTE,
                "CodecDeclined": CodecDeclined,
                "ZERO_UUID": ZERO_UUID,
                "encode_text_length": encode_text_length,
                "encode_uvarint": encode_uvarint,
                "join": b"".join,
                "fallback": recover,
            }
        )

    def compile(self) -> Encoder:
        source, schema = self.source, self.binding.schema
        with source.block("try:"):
            source.line("out = [head]")
            if self.has_holes:
                source.line("done = []")
            self.struct(schema.root, "m")
            self.flush()
            if self.has_holes:
                source.line("done.append(join(out))")
                source.line("return done")
            else:
                source.line("return [join(out)]")
        with source.block("except Exception:"):
            source.line("pass")
        source.line("return fallback(m, head)")
        encoder: Encoder = source.compile('def codec(m, head=b""):', f"encode {schema.name} version {self.version}")
        return encoder

    def fixed(self, letter: str, value: str) -> None:
        self.pending.append((letter, value))

    def close_group(self) -> None:
        """Turn the pending fixed-size values into one piece."""
        if not self.pending:
            return
        letters = [letter for letter, _ in self.pending]
        if letters == ["x"]:
            self.pieces.append('b"\\0"')
        else:
            name, _ = self.source.struct_call("P", letters)
            self.pieces.append(f"{name}({', '.join(value for _, value in self.pending if value)})")
        self.pending = []

    def flush(self) -> None:
        """Write out `pending` and `pieces`."""
        self.close_group()
        if len(self.pieces) == 1:
            self.source.line(f"out.append({self.pieces[0]})")
        elif self.pieces:
            self.source.line(f"out += {', '.join(self.pieces)}")
        self.pieces = []

    def length(self, field: FieldSchema, letter: str, length: str) -> None:
        """Close the group with a length; in flexible versions `length` names a variable with the length plus one."""
        if not (self.is_flexible and field.flexible):
            self.fixed(letter, length)
            self.close_group()
            return
        long_form = "encode_text_length" if letter == "h" else "encode_uvarint"
        group, self.pending = self.pending, []
        if not group:
            self.pieces.append(f"(ONE_BYTE[{length}] if {length} < 128 else {long_form}({length}))")
            return
        values = ", ".join(value for _, value in group if value)
        with_length, _ = self.source.struct_call("P", [*(letter for letter, _ in group), "B"])
        without, _ = self.source.struct_call("P", [letter for letter, _ in group])
        short = f"{with_length}({values}, {length})" if values else f"{with_length}({length})"
        self.pieces.append(f"({short} if {length} < 128 else {without}({values}) + {long_form}({length}))")

    def struct(self, schema: StructSchema, value: str) -> None:
        source = self.source
        for field in schema.absent_in(self.version):
            if not field.ignorable:
                with source.block(f"if {differs(field, f'{value}.{field.attribute}')}:"):
                    source.line("raise CodecDeclined")
        with source.block(f"if {value}.unknown_tags is not None:"):
            source.line("raise CodecDeclined")
        for field in schema.fields_in(self.version):
            self.field(field, f"{value}.{field.attribute}")
        if self.is_flexible:
            self.tagged(schema, value)

    def tagged(self, schema: StructSchema, value: str) -> None:
        source, fields = self.source, schema.tagged_in(self.version)
        if not fields:
            self.fixed("x", "")
            return
        self.flush()
        tests = [differs(field, f"{value}.{field.attribute}") for field in fields]
        with source.block(f"if {' or '.join(f'({test})' for test in tests)}:"):
            outer, tags, count = source.name("out"), source.name("tags"), source.name("t")
            source.line(f"{outer} = out; {tags} = []; {count} = 0")
            for field, test in zip(fields, tests, strict=True):
                with source.block(f"if {test}:"):
                    source.line(f"{count} += 1; out = []")
                    self.field(field, f"{value}.{field.attribute}")
                    self.flush()
                    source.line("raw = join(out)")
                    tag = encode_uvarint(field.tag)
                    source.line(f"{tags} += {tag!r}, encode_uvarint(len(raw)), raw")
            source.line(f"out = {outer}")
            source.line(f"out.append(ONE_BYTE[{count}])")
            source.line(f"out += {tags}")
        with source.block("else:"):
            source.line('out.append(b"\\0")')

    def field(self, field: FieldSchema, value: str) -> None:
        if field.is_array:
            self.array(field, value)
        elif field.struct is not None:
            self.struct_field(field, value)
        elif field.type in FIXED_FORMATS:
            if field.type == "uuid":
                self.check_uuid(value)
            self.fixed(FIXED_FORMATS[field.type], value)
        else:
            self.sized(field, value, is_nullable=self.version in field.nullable)

    def check_uuid(self, value: str) -> None:
        """Check the size of a UUID: `struct` would silently cut or pad it."""
        with self.source.block(f"if len({value}) != 16:"):
            self.source.line("raise CodecDeclined")

    def struct_field(self, field: FieldSchema, value: str) -> None:
        assert field.struct is not None
        source = self.source
        inner = source.name("o")
        if self.version not in field.nullable:
            source.line(f"{inner} = {value}")
            self.struct(field.struct, inner)
            return
        self.flush()
        source.line(f"{inner} = {value}")
        with source.block(f"if {inner} is None:"):
            source.line('out.append(b"\\0")' if self.version in field.tagged else 'out.append(b"\\xff")')
        with source.block("else:"):
            self.fixed("b", "1")
            self.struct(field.struct, inner)
            self.flush()

    def sized(self, field: FieldSchema, value: str, is_nullable: bool) -> None:
        """A string, bytes or records."""
        source = self.source
        raw, length = source.name("s"), source.name("n")
        flexible = self.is_flexible and field.flexible
        encoded = f"{value}.encode()" if field.type == "string" else value
        plus_one = " + 1" if flexible else ""
        if is_nullable:
            with source.block(f"if {value} is None:"):
                source.line(f'{raw} = b""; {length} = {0 if flexible else -1}')
            with source.block("else:"):
                source.line(f"{raw} = {encoded}; {length} = len({raw}){plus_one}")
        else:
            source.line(f"{raw} = {encoded}; {length} = len({raw}){plus_one}")
        self.length(field, "h" if field.type == "string" else "i", length)
        if field.type == "records":
            self.flush()
            with source.block(f"if len({raw}):"):
                source.line(f"done += join(out), {raw}")
                source.line("out = []")
        else:
            self.pieces.append(raw)

    def array(self, field: FieldSchema, value: str) -> None:
        source = self.source
        items, count = source.name("a"), source.name("n")
        flexible = self.is_flexible and field.flexible
        if self.version in field.nullable:
            with source.block(f"if {value} is None:"):
                source.line(f"{items} = (); {count} = {0 if flexible else -1}")
            with source.block("else:"):
                source.line(f"{items} = {value}; {count} = len({items}){' + 1' if flexible else ''}")
        else:
            source.line(f"{items} = {value}; {count} = len({items}){' + 1' if flexible else ''}")
        self.length(field, "i", count)
        if field.type == "uuid":
            uuid = source.name("e")
            with source.block(f"for {uuid} in {items}:"):
                self.check_uuid(uuid)
            self.pieces.append(f"*{items}")
        elif field.type in FIXED_FORMATS:
            letter = FIXED_FORMATS[field.type]
            packer = source.constant(f"AP{letter}", array_structs(letter).packer)
            self.pieces.append(f"{packer}(len({items}))(*{items})")
        else:
            self.elements(field, items)

    def elements(self, field: FieldSchema, items: str) -> None:
        source = self.source
        self.flush()
        element = source.name("o")
        with source.block(f"for {element} in {items}:"):
            if field.struct is not None:
                self.struct(field.struct, element)
            else:
                self.sized(field, element, is_nullable=False)
            self.flush()


def differs(field: FieldSchema, value: str) -> str:
    """An expression that is true where `value` is not the default of `field`."""
    default = field.default()
    if isinstance(default, StructSchema) or (field.absent_as_none and field.struct is not None):
        fields = field.struct.fields if field.struct is not None else []
        inner = " or ".join(
            [*(differs(each, f"{value}.{each.attribute}") for each in fields), f"{value}.unknown_tags is not None"]
        )
        return f"({value} is not None and ({inner}))" if field.absent_as_none else f"({value} is None or {inner})"
    if default is None:
        return f"{value} is not None"
    if default == []:
        return f"({value} is None or len({value}) != 0)"
    return f"{value} != {'ZERO_UUID' if default == ZERO_UUID else repr(default)}"
