"""The text of `.proto` files: read into a FileDescriptorProto and printed again.

proto2, proto3 and editions. Options are kept as `uninterpreted_option`, as protoc does before it knows what they mean;
comments are dropped. Type names stay as written until `protobuf.py` resolves them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from google.protobuf import descriptor_pb2 as pb
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

from ottla.schemas.languages import DEPTH_MAX, InvalidSchema

SCALARS = {
    name: getattr(Field, f"TYPE_{name.upper()}")
    for name in (
        *("double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string", "bytes"),
        *("uint32", "sfixed32", "sfixed64", "sint32", "sint64"),
    )
}
NAMES_OF_SCALARS = {number: name for name, number in SCALARS.items()}
LABELS = {"optional": Field.LABEL_OPTIONAL, "required": Field.LABEL_REQUIRED, "repeated": Field.LABEL_REPEATED}
EDITIONS = {"2023": 1000, "2024": 1001}
FIELD_NUMBER_MAX = 536_870_911
ENUM_NUMBER_MAX = 2_147_483_647
_TOKENS = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<number>0[xX][0-9a-fA-F]+|\d+\.?\d*(?:[eE][+-]?\d+)?f?|\.\d+(?:[eE][+-]?\d+)?f?)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<symbol>[{}\[\]()<>;,=.:+\-/])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "?": "?",
}


class _Token:
    __slots__ = ("kind", "line", "text")

    def __init__(self, kind: str, text: str, line: int) -> None:
        self.kind, self.text, self.line = kind, text, line


def read_proto(text: str) -> pb.FileDescriptorProto:
    """Parse a file. Raises `InvalidSchema` with the line."""
    return _Reader(text).file()


class _Reader:
    def __init__(self, text: str) -> None:
        self._tokens: list[_Token] = []
        self._at = 0
        self._syntax = "proto2"
        at, line = 0, 1
        while at < len(text):
            match = _TOKENS.match(text, at)
            if match is None:
                raise InvalidSchema(f"line {line}: {text[at : at + 20]!r} is not Protobuf")
            kind = match.lastgroup or ""
            if kind != "space":
                self._tokens.append(_Token(kind, match[0], line))
            line += match[0].count("\n")
            at = match.end()
        self._tokens.append(_Token("end", "", line))

    # Tokens

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _fail(self, wanted: str) -> InvalidSchema:
        token = self._next
        return InvalidSchema(
            f"line {token.line}: {wanted} is expected, and {token.text[:40]!r} found"
            if token.text
            else f"line {token.line}: {wanted} is expected, and the text ends"
        )

    def _take(self, text: str) -> bool:
        if self._next.text == text and self._next.kind != "text":
            self._at += 1
            return True
        return False

    def _expect(self, text: str) -> None:
        if not self._take(text):
            raise self._fail(f"'{text}'")

    def _name(self) -> str:
        if self._next.kind != "name":
            raise self._fail("a name")
        self._at += 1
        return self._tokens[self._at - 1].text

    def _full_name(self) -> str:
        dot = "." if self._take(".") else ""
        parts = [self._name()]
        while self._next.text == "." and self._tokens[self._at + 1].kind == "name":
            self._at += 1
            parts.append(self._name())
        return dot + ".".join(parts)

    def _string(self) -> str:
        if self._next.kind != "text":
            raise self._fail("a text in quotes")
        found = ""
        while self._next.kind == "text":
            found += _unescaped(self._next.text[1:-1])
            self._at += 1
        return found

    def _integer(self, lowest: int, highest: int, what: str) -> int:
        sign = -1 if self._take("-") else 1
        token = self._next
        try:
            number = sign * int(
                token.text, 16 if token.text[:2].lower() == "0x" else 8 if re.fullmatch(r"0[0-7]+", token.text) else 10
            )
        except ValueError:
            raise self._fail(what) from None
        if not lowest <= number <= highest:
            raise InvalidSchema(f"line {token.line}: {what} is {number}, and must be from {lowest} to {highest}")
        self._at += 1
        return number

    # Files

    def file(self) -> pb.FileDescriptorProto:
        found = pb.FileDescriptorProto()
        if self._next.text == "syntax":
            self._at += 1
            self._expect("=")
            self._syntax = self._string()
            self._expect(";")
            if self._syntax not in ("proto2", "proto3"):
                raise InvalidSchema(f"syntax {self._syntax!r} is not known: use proto2 or proto3")
        elif self._next.text == "edition":
            self._at += 1
            self._expect("=")
            edition = self._string()
            self._expect(";")
            if edition not in EDITIONS:
                raise InvalidSchema(f"edition {edition!r} is not known: use {' or '.join(EDITIONS)}")
            self._syntax = "editions"
            found.edition = EDITIONS[edition]
        if self._syntax != "proto2":  # which a descriptor says by not saying anything
            found.syntax = self._syntax
        while self._next.kind != "end":
            word = self._next.text
            self._at += 1
            if word == ";":
                continue
            if word == "package":
                found.package = self._full_name()
                self._expect(";")
            elif word == "import":
                if self._take("public"):
                    found.public_dependency.append(len(found.dependency))
                elif self._take("weak"):
                    found.weak_dependency.append(len(found.dependency))
                found.dependency.append(self._string())
                self._expect(";")
            elif word == "option":
                self._option(found.options)
                self._expect(";")
            elif word == "message":
                self._message(found.message_type.add(), 0)
            elif word == "enum":
                self._enum(found.enum_type.add())
            elif word == "service":
                self._service(found.service.add())
            elif word == "extend":
                self._extend(found.extension, found.message_type, 0)
            else:
                self._at -= 1
                raise self._fail("message, enum, service, import, option or package")
        return found

    def _message(self, found: pb.DescriptorProto, depth: int) -> None:
        if depth > DEPTH_MAX:
            raise InvalidSchema(f"messages are nested more than {DEPTH_MAX} levels deep")
        found.name = self._name()
        self._body(found, depth)

    def _body(self, found: pb.DescriptorProto, depth: int) -> None:
        self._expect("{")
        synthetic: list[Field] = []
        while not self._take("}"):
            word = self._next.text
            follows = self._tokens[min(self._at + 1, len(self._tokens) - 1)]
            is_word = self._next.kind == "name"
            if self._take(";"):
                continue
            if is_word and word == "message" and follows.kind == "name" and self._tokens[self._at + 2].text == "{":
                self._at += 1
                self._message(found.nested_type.add(), depth + 1)
            elif is_word and word == "enum" and follows.kind == "name" and self._tokens[self._at + 2].text == "{":
                self._at += 1
                self._enum(found.enum_type.add())
            elif is_word and word == "oneof" and follows.kind == "name" and self._tokens[self._at + 2].text == "{":
                self._at += 1
                self._oneof(found, depth)
            elif is_word and word == "extend" and self._tokens[self._at + 1].kind in ("name", "symbol") and follows.text != "=":
                self._at += 1
                self._extend(found.extension, found.nested_type, depth)
            elif is_word and word == "reserved":
                self._at += 1
                self._reserved(found.reserved_range, found.reserved_name, 1, FIELD_NUMBER_MAX, is_end_inclusive=False)
            elif is_word and word == "extensions":
                self._at += 1
                self._extensions(found)
            elif is_word and word == "option":
                self._at += 1
                self._option(found.options)
                self._expect(";")
            else:
                field = self._field(found, depth)
                if field.proto3_optional:
                    synthetic.append(field)
        self._check_reserved(found)
        for field in synthetic:  # after the written ones, as protoc does it
            field.oneof_index = len(found.oneof_decl)
            found.oneof_decl.add().name = f"_{field.name}"

    def _field(self, parent: pb.DescriptorProto, depth: int, oneof: int | None = None) -> Field:
        label = None
        if self._next.text in LABELS and self._tokens[self._at + 1].text not in ("=", ";") and oneof is None:
            label = self._name()
        if self._next.text == "map" and self._tokens[self._at + 1].text == "<":
            return self._map(parent, oneof is None and label is None)
        field = parent.field.add()
        self._typed(field, parent.nested_type, depth)
        field.label = LABELS[label or "optional"]
        if label == "optional" and self._syntax == "proto3":
            field.proto3_optional = True
        if label is None and oneof is None and self._syntax == "proto2" and field.type != Field.TYPE_GROUP:
            raise InvalidSchema(f"field {field.name} of {parent.name} needs optional, required or repeated (syntax is proto2)")
        if label == "required" and self._syntax == "proto3":
            raise InvalidSchema(f"field {field.name} of {parent.name} is required, which proto3 does not have")
        if oneof is not None:
            field.oneof_index = oneof
        return field

    def _typed(self, field: Field, nested: Any, depth: int) -> None:
        """Type, name, number and options of a field."""
        if self._next.text == "group":
            self._at += 1
            name = self._name()
            self._expect("=")
            field.number = self._integer(1, FIELD_NUMBER_MAX, "the number of a field")
            field.name, field.type, field.type_name = name.lower(), Field.TYPE_GROUP, name
            if self._take("["):
                self._options(field)
            message = nested.add()
            message.name = name
            self._body(message, depth + 1)
            return
        if self._next.kind != "name" and self._next.text != ".":
            raise self._fail("a type")
        written = self._full_name()
        if written in SCALARS:
            field.type = SCALARS[written]
        else:
            field.type_name = written
        field.name = self._name()
        self._expect("=")
        field.number = self._integer(1, FIELD_NUMBER_MAX, "the number of a field")
        if 19_000 <= field.number <= 19_999:
            raise InvalidSchema(f"field {field.name} has number {field.number}: 19000 to 19999 belong to Protobuf itself")
        if self._take("["):
            self._options(field)
        self._expect(";")

    def _map(self, parent: pb.DescriptorProto, is_allowed: bool) -> Field:
        if not is_allowed:
            raise self._fail("a type other than map")
        self._at += 1
        self._expect("<")
        key = self._full_name()
        if key not in SCALARS or key in ("double", "float", "bytes"):
            raise InvalidSchema(
                f"line {self._next.line}: the keys of a map cannot be {key}: use a whole number, bool or string"
            )
        self._expect(",")
        value = self._full_name()
        self._expect(">")
        field = parent.field.add()
        field.name = self._name()
        self._expect("=")
        field.number = self._integer(1, FIELD_NUMBER_MAX, "the number of a field")
        if self._take("["):
            self._options(field)
        self._expect(";")
        entry = parent.nested_type.add()
        entry.name = "".join(part[:1].upper() + part[1:] for part in field.name.split("_")) + "Entry"
        entry.options.map_entry = True
        for number, (name, kind) in enumerate((("key", key), ("value", value)), 1):
            part = entry.field.add(name=name, number=number, label=Field.LABEL_OPTIONAL)
            if kind in SCALARS:
                part.type = SCALARS[kind]
            else:
                part.type_name = kind
        field.label, field.type, field.type_name = Field.LABEL_REPEATED, Field.TYPE_MESSAGE, entry.name
        return field

    def _oneof(self, parent: pb.DescriptorProto, depth: int) -> None:
        index = len(parent.oneof_decl)
        found = parent.oneof_decl.add()
        found.name = self._name()
        self._expect("{")
        while not self._take("}"):
            if self._take(";"):
                continue
            if self._next.text == "option":
                self._at += 1
                self._option(found.options)
                self._expect(";")
            else:
                self._field(parent, depth, index)

    def _extend(self, extensions: Any, nested: Any, depth: int) -> None:
        target = self._full_name()
        self._expect("{")
        while not self._take("}"):
            if self._take(";"):
                continue
            label = self._name() if self._next.text in LABELS else "optional"
            field = extensions.add()
            self._typed(field, nested, depth)
            field.label, field.extendee = LABELS[label], target

    def _check_reserved(self, found: pb.DescriptorProto) -> None:
        for field in found.field:
            if any(each.start <= field.number < each.end for each in found.reserved_range):
                raise InvalidSchema(f"field {field.name} of {found.name} has the reserved number {field.number}")
            if field.name in found.reserved_name:
                raise InvalidSchema(f"field {field.name} of {found.name} has a reserved name")

    def _reserved(self, ranges: Any, names: Any, lowest: int, highest: int, *, is_end_inclusive: bool) -> None:
        while True:
            if self._next.kind == "text":
                names.append(self._string())
            elif self._next.kind == "name":
                names.append(self._name())
            else:
                begin, end = self._range(lowest, highest)
                ranges.add(start=begin, end=end if is_end_inclusive else end + 1)
            if not self._take(","):
                break
        self._expect(";")

    def _range(self, lowest: int, highest: int) -> tuple[int, int]:
        begin = end = self._integer(lowest, highest, "a number")
        if self._take("to"):
            end = highest if self._take("max") else self._integer(lowest, highest, "a number")
        return begin, end

    def _extensions(self, found: pb.DescriptorProto) -> None:
        first = len(found.extension_range)
        while True:
            begin, end = self._range(1, FIELD_NUMBER_MAX)
            found.extension_range.add(start=begin, end=end + 1)
            if not self._take(","):
                break
        if self._take("["):
            self._options(found.extension_range[first])
        self._expect(";")

    def _enum(self, found: pb.EnumDescriptorProto) -> None:
        found.name = self._name()
        self._expect("{")
        while not self._take("}"):
            if self._take(";"):
                continue
            if self._next.text == "option" and self._tokens[self._at + 1].text != "=":
                self._at += 1
                self._option(found.options)
                self._expect(";")
            elif self._next.text == "reserved" and self._tokens[self._at + 1].text != "=":
                self._at += 1
                lowest = -ENUM_NUMBER_MAX - 1
                self._reserved(found.reserved_range, found.reserved_name, lowest, ENUM_NUMBER_MAX, is_end_inclusive=True)
            else:
                value = found.value.add()
                value.name = self._name()
                self._expect("=")
                value.number = self._integer(-ENUM_NUMBER_MAX - 1, ENUM_NUMBER_MAX, "the number of an enum value")
                if self._take("["):
                    self._options(value)
                self._expect(";")
        if not found.value:
            raise InvalidSchema(f"enum {found.name} has no values")
        names = {each.number: each.name for each in reversed(found.value)}
        is_alias = any(
            each.name[0].name_part == "allow_alias" and each.identifier_value == "true"
            for each in found.options.uninterpreted_option
        )
        for each in found.value:
            if names[each.number] != each.name and not is_alias and not found.options.allow_alias:
                text = f"{names[each.number]} and {each.name} of enum {found.name} have the same number: set option allow_alias"
                raise InvalidSchema(text)
            if any(own.start <= each.number <= own.end for own in found.reserved_range) or each.name in found.reserved_name:
                raise InvalidSchema(f"{each.name} of enum {found.name} is reserved")
        if self._syntax == "proto3" and found.value[0].number != 0:
            raise InvalidSchema(f"the first value of enum {found.name} is {found.value[0].number}, and must be 0 in proto3")

    def _service(self, found: pb.ServiceDescriptorProto) -> None:
        found.name = self._name()
        self._expect("{")
        while not self._take("}"):
            if self._take(";"):
                continue
            if self._take("option"):
                self._option(found.options)
                self._expect(";")
                continue
            self._expect("rpc")
            method = found.method.add()
            method.name = self._name()
            self._expect("(")
            method.client_streaming = self._take("stream")
            method.input_type = self._full_name()
            self._expect(")")
            self._expect("returns")
            self._expect("(")
            method.server_streaming = self._take("stream")
            method.output_type = self._full_name()
            self._expect(")")
            if self._take("{"):
                while not self._take("}"):
                    if self._take(";"):
                        continue
                    self._expect("option")
                    self._option(method.options)
                    self._expect(";")
            else:
                self._expect(";")

    # Options

    def _options(self, owner: Any) -> None:
        """`[name = value, …]`; default and json_name are fields of their own."""
        while True:
            word = self._next.text
            if isinstance(owner, Field) and word == "default" and self._tokens[self._at + 1].text == "=":
                self._at += 2
                owner.default_value = self._constant()
            elif isinstance(owner, Field) and word == "json_name" and self._tokens[self._at + 1].text == "=":
                self._at += 2
                owner.json_name = self._string()
            else:
                self._option(owner.options)
            if self._take("]"):
                return
            self._expect(",")

    def _option(self, options: Any) -> None:
        option = options.uninterpreted_option.add()
        while True:
            if self._take("("):
                option.name.add(name_part=self._full_name(), is_extension=True)
                self._expect(")")
            else:
                option.name.add(name_part=self._name(), is_extension=False)
            if not self._take("."):
                break
        self._expect("=")
        token = self._next
        if token.text == "{":
            option.aggregate_value = self._aggregate()
        elif token.kind == "text":
            option.string_value = self._string().encode()
        elif token.kind == "name":
            option.identifier_value = self._name()
        else:
            written = self._constant()
            try:
                number = int(written, 0)
            except ValueError:
                option.double_value = float(written.rstrip("fF"))
            else:
                if number < 0:
                    option.negative_int_value = number
                else:
                    option.positive_int_value = number

    def _constant(self) -> str:
        sign = "-" if self._take("-") else ""
        self._take("+")
        if self._next.kind == "text":
            return self._string()
        if self._next.kind not in ("number", "name"):
            raise self._fail("a value")
        self._at += 1
        return sign + self._tokens[self._at - 1].text

    def _aggregate(self) -> str:
        """The text between braces, with single spaces."""
        self._expect("{")
        depth, parts = 1, []
        while depth:
            token = self._next
            if token.kind == "end":
                raise self._fail("'}'")
            depth += {"{": 1, "}": -1}.get(token.text, 0) if token.kind == "symbol" else 0
            self._at += 1
            if depth:
                parts.append(token.text)
        return " ".join(parts)


def _unescaped(text: str) -> str:
    def replaced(match: re.Match[str]) -> str:
        found = match[1]
        if found in _ESCAPES:
            return _ESCAPES[found]
        if found[:1] in "xX":
            return chr(int(found[1:], 16))
        if found[:1] in "uU":
            return chr(int(found[1:], 16))
        return chr(int(found, 8)) if found.isdigit() else found

    return re.sub(r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{1,3}|.)", replaced, text, flags=re.DOTALL)


# Printing


def print_proto(file: pb.FileDescriptorProto, *, is_normalized: bool = False) -> str:
    """The text of a file. Normalized: imports, options, messages' parts in a fixed order, type names in full."""
    return _Printer(is_normalized).file(file)


class _Printer:
    def __init__(self, is_normalized: bool) -> None:
        self._is_normalized = is_normalized

    def file(self, file: pb.FileDescriptorProto) -> str:
        if file.syntax == "editions":
            name = next(name for name, number in EDITIONS.items() if number == file.edition)
            parts = [f'edition = "{name}";']
        else:
            parts = [f'syntax = "{file.syntax or "proto2"}";']
        if file.package:
            parts.append(f"package {file.package};")
        blocks = ["\n".join(parts)]
        imports = []
        for index, name in enumerate(file.dependency):
            kind = "public " if index in file.public_dependency else "weak " if index in file.weak_dependency else ""
            imports.append(f"import {kind}{_quoted(name)};")
        if imports:
            blocks.append("\n".join(sorted(imports) if self._is_normalized else imports))
        if options := self._options(file.options):
            blocks.append("\n".join(f"option {each};" for each in options))
        syntax = file.syntax
        blocks += [self._message(each, 0, syntax) for each in file.message_type if not self._is_group(each, file.extension)]
        blocks += [self._enum(each, 0) for each in file.enum_type]
        blocks += [block for block in [self._extend(file.extension, 0, syntax, file.message_type)] if block]
        blocks += [self._service(each) for each in file.service]
        return "\n\n".join(blocks) + "\n"

    @staticmethod
    def _is_group(message: pb.DescriptorProto, fields: Iterable[Field]) -> bool:
        return any(each.type == Field.TYPE_GROUP and each.type_name.rpartition(".")[2] == message.name for each in fields)

    def _message(self, message: pb.DescriptorProto, depth: int, syntax: str, head: str = "") -> str:
        pad = "  " * (depth + 1)
        lines = [f"{'  ' * depth}{head or f'message {message.name}'} {{"]
        lines += [f"{pad}option {each};" for each in self._options(message.options)]
        ranges = [_range(each.start, each.end - 1, FIELD_NUMBER_MAX) for each in message.reserved_range]
        if ranges:
            lines.append(f"{pad}reserved {', '.join(ranges)};")
        if message.reserved_name:
            lines.append(f"{pad}reserved {', '.join(map(_quoted, message.reserved_name))};")
        entries = {each.name: each for each in message.nested_type if each.options.map_entry}
        nested = [
            each
            for each in message.nested_type
            if each.name not in entries and not self._is_group(each, [*message.field, *message.extension])
        ]
        blocks = [f"\n{self._message(each, depth + 1, syntax)}" for each in nested]
        # Records name a nested message by its number among its neighbours, and the entry of a map is one of these.
        is_nested_first = bool(entries) and message.nested_type[0].name not in entries
        if is_nested_first:
            lines += [*blocks, ""]
        real = [index for index, each in enumerate(message.oneof_decl) if not _is_synthetic(message, index)]
        fields = list(message.field)
        if self._is_normalized:
            fields.sort(key=lambda each: each.number)
        for field in fields:
            if not (field.HasField("oneof_index") and field.oneof_index in real):
                lines.append(self._field(field, depth + 1, syntax, message.nested_type, entries))
        for index in sorted(real, key=lambda each: message.oneof_decl[each].name) if self._is_normalized else real:
            lines.append(f"\n{pad}oneof {message.oneof_decl[index].name} {{")
            lines += [f"{pad}  option {each};" for each in self._options(message.oneof_decl[index].options)]
            members = [each for each in fields if each.HasField("oneof_index") and each.oneof_index == index]
            lines += [self._field(each, depth + 2, syntax, message.nested_type, entries, in_oneof=True) for each in members]
            lines.append(f"{pad}}}")
        for each in message.extension_range:
            options = self._options(each.options)
            shown = f" [{', '.join(options)}]" if options else ""
            lines.append(f"{pad}extensions {_range(each.start, each.end - 1, FIELD_NUMBER_MAX)}{shown};")
        if not is_nested_first:
            lines += blocks
        lines += [f"\n{self._enum(each, depth + 1)}" for each in message.enum_type]
        if extend := self._extend(message.extension, depth + 1, syntax, message.nested_type):
            lines.append(f"\n{extend}")
        return "\n".join([*lines, f"{'  ' * depth}}}"])

    def _field(
        self, field: Field, depth: int, syntax: str, nested: Any, entries: dict[str, pb.DescriptorProto], in_oneof: bool = False
    ) -> str:
        options = self._options(field.options)
        if field.HasField("default_value"):
            shown = _quoted(field.default_value) if field.type in (Field.TYPE_STRING, Field.TYPE_BYTES) else field.default_value
            options.insert(0, f"default = {shown}")
        if field.HasField("json_name") and field.json_name != _json_name(field.name):
            options.append(f"json_name = {_quoted(field.json_name)}")
        tail = f" [{', '.join(options)}]" if options else ""
        pad = "  " * depth
        entry = entries.get(field.type_name.rpartition(".")[2])
        if entry is not None and field.label == Field.LABEL_REPEATED:
            kinds = ", ".join(_type(each) for each in entry.field)
            return f"{pad}map<{kinds}> {field.name} = {field.number}{tail};"
        label = ""
        if not in_oneof:
            if field.label == Field.LABEL_REPEATED:
                label = "repeated "
            elif field.label == Field.LABEL_REQUIRED:
                label = "required "
            elif field.proto3_optional or syntax in ("", "proto2"):
                label = "optional "
        if field.type == Field.TYPE_GROUP:
            name = field.type_name.rpartition(".")[2]
            message = next(each for each in nested if each.name == name)
            return self._message(message, depth, syntax, f"{label}group {name} = {field.number}{tail}")
        return f"{pad}{label}{_type(field)} {field.name} = {field.number}{tail};"

    def _enum(self, enum: pb.EnumDescriptorProto, depth: int) -> str:
        pad = "  " * (depth + 1)
        lines = [f"{'  ' * depth}enum {enum.name} {{"]
        lines += [f"{pad}option {each};" for each in self._options(enum.options)]
        if enum.reserved_range:
            ranges = [_range(each.start, each.end, ENUM_NUMBER_MAX) for each in enum.reserved_range]
            lines.append(f"{pad}reserved {', '.join(ranges)};")
        if enum.reserved_name:
            lines.append(f"{pad}reserved {', '.join(map(_quoted, enum.reserved_name))};")
        values: list[Any] = list(enum.value)
        if self._is_normalized:
            values.sort(key=lambda each: (each.number != 0, each.number))
        for value in values:
            options = self._options(value.options)
            lines.append(f"{pad}{value.name} = {value.number}{_bracketed(options)};")
        return "\n".join([*lines, f"{'  ' * depth}}}"])

    def _extend(self, extensions: Any, depth: int, syntax: str, nested: Any) -> str:
        by_target: dict[str, list[Field]] = {}
        for each in extensions:
            by_target.setdefault(each.extendee, []).append(each)
        blocks = []
        for target, fields in by_target.items():
            lines = [f"{'  ' * depth}extend {target} {{"]
            lines += [self._field(each, depth + 1, syntax, nested, {}) for each in fields]
            blocks.append("\n".join([*lines, f"{'  ' * depth}}}"]))
        return "\n\n".join(blocks)

    def _service(self, service: pb.ServiceDescriptorProto) -> str:
        lines = [f"service {service.name} {{"]
        lines += [f"  option {each};" for each in self._options(service.options)]
        for method in service.method:
            asked = f"{'stream ' if method.client_streaming else ''}{method.input_type}"
            answer = f"{'stream ' if method.server_streaming else ''}{method.output_type}"
            head = f"  rpc {method.name} ({asked}) returns ({answer})"
            options = self._options(method.options)
            lines.append(
                f"{head};" if not options else "\n".join([f"{head} {{", *(f"    option {each};" for each in options), "  }"])
            )
        return "\n".join([*lines, "}"])

    def _options(self, options: Any) -> list[str]:
        """Options as `name = value`: as they were written, or as a compiler has understood them."""
        found = [_written(each) for each in options.uninterpreted_option]
        for field, value in options.ListFields():
            if field.name in ("uninterpreted_option", "map_entry", "features"):
                continue
            for each in value if field.is_repeated else [value]:
                found += [f"{field.name} = {_option_value(field, each)}"]
        return sorted(found) if self._is_normalized else found


def _bracketed(options: list[str]) -> str:
    return f" [{', '.join(options)}]" if options else ""


def _option_value(field: Any, value: Any) -> str:
    if field.enum_type is not None:
        return str(field.enum_type.values_by_number[value].name)
    if isinstance(value, bool):
        return str(value).lower()
    return _quoted(value) if isinstance(value, str) else str(value)


def _written(option: pb.UninterpretedOption) -> str:
    name = ".".join(f"({each.name_part})" if each.is_extension else each.name_part for each in option.name)
    if option.HasField("aggregate_value"):
        value = f"{{ {option.aggregate_value} }}"
    elif option.HasField("string_value"):
        value = _quoted(option.string_value.decode("utf-8", "replace"))
    elif option.HasField("identifier_value"):
        value = option.identifier_value
    elif option.HasField("positive_int_value"):
        value = str(option.positive_int_value)
    elif option.HasField("negative_int_value"):
        value = str(option.negative_int_value)
    else:
        value = repr(option.double_value)
    return f"{name} = {value}"


def _is_synthetic(message: pb.DescriptorProto, index: int) -> bool:
    members = [each for each in message.field if each.HasField("oneof_index") and each.oneof_index == index]
    return bool(members) and all(each.proto3_optional for each in members)


def _type(field: Field) -> str:
    return NAMES_OF_SCALARS.get(field.type) or field.type_name if not field.type_name else field.type_name


def _range(begin: int, end: int, highest: int) -> str:
    return str(begin) if begin == end else f"{begin} to {'max' if end >= highest else end}"


def _json_name(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(each[:1].upper() + each[1:] for each in rest)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return f'"{escaped}"'
