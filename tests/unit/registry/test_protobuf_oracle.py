"""Our reader of `.proto` text beside protoc, and what our comparison calls compatible beside the bytes of messages."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from google.protobuf import descriptor_pb2 as pb
from google.protobuf import message_factory
from grpc_tools import protoc

from ottla.schemas.languages import InvalidSchema, Source
from ottla.schemas.languages.proto_text import print_proto, read_proto
from ottla.schemas.languages.protobuf import built, differences

SCALARS = ["int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "sfixed32", "bool", "string", "bytes", "double"]
WELL_KNOWN = Path(protoc.__file__).parent / "_proto"
FILES_QUICK, FILES = 150, 3_000
PAIRS_QUICK, PAIRS = 300, 10_000


class Files:
    """Random `.proto` files, changes of them, and messages, from one seed. A file is plain data until it is written."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def file(self) -> dict[str, Any]:
        random = self._random
        syntax = random.choice(["proto3", "proto3", "proto2"])
        messages = [self.message(f"M{each}", syntax, 0) for each in range(random.randint(1, 3))]
        return {"syntax": syntax, "package": random.choice(["p", "a.b"]), "messages": messages}

    def message(self, name: str, syntax: str, depth: int) -> dict[str, Any]:
        random = self._random
        made: dict[str, Any] = {"name": name, "fields": [], "oneofs": [], "messages": [], "enums": []}
        if depth < 2 and random.random() < 0.5:
            made["messages"].append(self.message(f"N{depth}", syntax, depth + 1))
        if random.random() < 0.5:
            made["enums"].append({"name": f"E{depth}", "symbols": [f"{name}_E{depth}_{each}" for each in range(3)]})
        types = [*SCALARS, *(each["name"] for each in made["messages"]), *(each["name"] for each in made["enums"])]
        numbers = iter(random.sample(range(1, 40), 12))
        for each in range(random.randint(0, 6)):
            label = random.choice(["", "optional", "repeated"] if syntax == "proto3" else ["optional", "repeated", "optional"])
            made["fields"].append({"label": label, "type": random.choice(types), "name": f"f{each}", "number": next(numbers)})
        if random.random() < 0.4:
            kind = f"map<{random.choice(['string', 'int32', 'bool'])}, {random.choice(types)}>"
            made["fields"].append({"label": "", "type": kind, "name": "pairs", "number": next(numbers)})
        if random.random() < 0.4:
            members = [
                {"label": "", "type": random.choice(types), "name": f"o{each}", "number": next(numbers)} for each in range(2)
            ]
            made["oneofs"].append({"name": "choice", "fields": members})
        return made

    def changed(self, file: dict[str, Any]) -> dict[str, Any]:
        file = json.loads(json.dumps(file))
        random = self._random
        for _ in range(random.randint(1, 2)):
            message = random.choice(file["messages"])
            fields = message["fields"]
            match random.randint(0, 5):
                case 0:
                    added = {"label": "repeated", "type": random.choice(SCALARS), "name": "added"}
                    fields.append(added | {"number": random.randint(41, 99)})
                case 1 if fields:
                    fields.pop(random.randrange(len(fields)))
                case 2 if fields:
                    random.choice(fields)["name"] = "renamed"
                case 3 if [each for each in fields if each["type"] in SCALARS]:
                    random.choice([each for each in fields if each["type"] in SCALARS])["type"] = random.choice(SCALARS)
                case 4 if message["oneofs"]:
                    fields += message["oneofs"].pop()["fields"]
                    if file["syntax"] == "proto2":
                        for each in fields:
                            each["label"] = each["label"] or ("" if each["type"].startswith("map") else "optional")
                case _:
                    for each in message["enums"]:
                        each["symbols"].append(f"{message['name']}_more")
        names = set()
        for message in file["messages"]:  # a change may have come twice
            names.clear()
            kept = []
            for each in message["fields"]:
                if each["name"] not in names and each["number"] not in names:
                    kept.append(each)
                names |= {each["name"], each["number"]}
            message["fields"] = kept
            for each in message["enums"]:
                each["symbols"] = list(dict.fromkeys(each["symbols"]))
        return file

    def fill(self, message: Any, depth: int = 0) -> Any:
        """Give some fields values."""
        random = self._random
        for field in message.DESCRIPTOR.fields:
            if random.random() < 0.3 or depth > 3:
                continue
            if field.message_type is not None and field.message_type.GetOptions().map_entry:
                continue
            if field.message_type is not None:
                self.fill(getattr(message, field.name).add() if field.is_repeated else self._entered(message, field), depth + 1)
            elif field.is_repeated:
                getattr(message, field.name).extend(self._value(field) for _ in range(random.randint(0, 3)))
            else:
                setattr(message, field.name, self._value(field))
        return message

    def _entered(self, message: Any, field: Any) -> Any:
        getattr(message, field.name).SetInParent()
        return getattr(message, field.name)

    def _value(self, field: Any) -> Any:
        if field.enum_type is not None:
            return self._random.choice(field.enum_type.values).number
        match field.cpp_type:
            case field.CPPTYPE_STRING:
                return "text" if field.type == field.TYPE_STRING else b"text"
            case field.CPPTYPE_BOOL:
                return True
            case field.CPPTYPE_DOUBLE | field.CPPTYPE_FLOAT:
                return 1.5
        return self._random.randint(0, 100)


def text_of(file: dict[str, Any]) -> str:
    lines = [f'syntax = "{file["syntax"]}";', f"package {file['package']};", "// a comment"]
    for each in file["messages"]:
        lines += lines_of(each, file["syntax"])
    return "\n".join(lines) + "\n"


def lines_of(message: dict[str, Any], syntax: str) -> list[str]:
    lines = [f"message {message['name']} {{"]
    for each in message["messages"]:
        lines += lines_of(each, syntax)
    for each in message["enums"]:
        lines += [f"enum {each['name']} {{", *(f"{name} = {number};" for number, name in enumerate(each["symbols"])), "}"]
    for each in message["fields"]:
        lines.append(line_of(each))
    for each in message["oneofs"]:
        lines += [f"oneof {each['name']} {{", *map(line_of, each["fields"]), "}"]
    return [*lines, "}"]


def line_of(field: dict[str, Any]) -> str:
    return f"{field['label']} {field['type']} {field['name']} = {field['number']};".lstrip()


def by_protoc(texts: Sequence[str], folder: Path) -> list[pb.FileDescriptorProto]:
    """What protoc makes of files."""
    for number, text in enumerate(texts):
        (folder / f"f{number}.proto").write_text(text)
    found = []
    for number in range(len(texts)):  # one at a time: they use the same names
        out = folder / "set"
        code = protoc.main(["protoc", f"-I{folder}", f"-I{WELL_KNOWN}", f"--descriptor_set_out={out}", f"f{number}.proto"])
        assert code == 0, texts[number]
        found.append(plain(pb.FileDescriptorSet.FromString(out.read_bytes()).file[0]))
    return found


def by_us(text: str) -> pb.FileDescriptorProto:
    file = pb.FileDescriptorProto()
    built(Source("PROTOBUF", text)).CopyToProto(file)
    return plain(file)


def plain(file: pb.FileDescriptorProto) -> pb.FileDescriptorProto:
    """Without the name and without options, which a registry keeps as text only; a map's entry stays marked."""
    file.ClearField("name")
    file.ClearField("options")
    _strip(file)
    return file


def _strip(message: Any) -> None:
    if isinstance(message, pb.FieldDescriptorProto):
        message.ClearField("json_name")  # protoc writes down what follows from the name
    for field, value in list(message.ListFields()):
        if field.message_type is None:
            continue
        for each in list(value) if field.is_repeated else [value]:
            if field.name == "options":
                is_entry = getattr(each, "map_entry", False)
                message.ClearField("options")
                if is_entry:
                    message.options.map_entry = True
            else:
                _strip(each)


def places(owner: Any) -> Any:
    """The numbers under which records name the messages of a file."""
    messages = getattr(owner, "nested_types", None)
    if messages is None:
        messages = owner.message_types_by_name.values()
    return [(each.name, places(each)) for each in messages]


WRITTEN = [
    'syntax = "proto3";\n\nmessage M { int32 a = 0x1F; string b = 017; }',
    ('syntax = "proto3"; package a.b.c; message M { .a.b.c.N n = 1; c.N o = 2; N p = 3; } message N {}'),
    (
        'syntax = "proto3"; message M { map<string, M> m = 1; optional int32 o = 2; reserved 5, 7 to 9, '
        '100 to max; reserved "x", "y"; }'
    ),
    'syntax = "proto3"; message M { oneof o { string a = 1; M b = 2; } ; ; } ;',
    (
        'syntax = "proto3"; enum E { option allow_alias = true; A = 0; B = 0; C = -5; reserved 10 to 20;'
        ' reserved "Z"; } message M { E e = 1; }'
    ),
    ('syntax = "proto3"; import "google/protobuf/any.proto"; message M { google.protobuf.Any any = 1; }'),
    (
        'syntax = "proto3"; import public "google/protobuf/empty.proto"; service S { rpc R '
        "(google.protobuf.Empty) returns (stream google.protobuf.Empty); }"
    ),
    (
        'syntax = "proto3"; service S { rpc A (stream M) returns (M) { option deprecated = true; } rpc '
        "B (M) returns (M) {} } message M {}"
    ),
    (
        'message M { required int32 a = 1; optional string b = 2 [default = "x\\n\\001\\"y"]; repeated '
        "int32 c = 3 [packed = true]; }"
    ),
    (
        "message M { optional double d = 1 [default = -inf]; optional float f = 2 [default = nan]; "
        "optional bool t = 3 [default = true]; }"
    ),
    (
        "message M { optional group G = 1 { optional int32 a = 2; } extensions 100 to 199, 500; } "
        "extend M { optional int32 x = 100; }"
    ),
    "message M { extensions 100 to max; message I { extend M { optional I i = 100; } } }",
    ("enum E { A = 1; B = 2; } message M { optional E e = 1 [default = B]; optional string y = 2 [default = '\\101\\x42']; }"),
    (
        'syntax = "proto3"; /* a\n comment */ message /* here */ M { // there\n int32 message = 1; int32 '
        "optional = 2; string syntax = 3; }"
    ),
    (
        'syntax = "proto3"; option java_package = "x" "y"; message M { option deprecated = true; int32 '
        'a = 1 [json_name = "A", deprecated = true]; }'
    ),
    (
        'syntax = "proto3"; message Outer { message Inner { Inner self = 1; Outer out = 2; Outer.Inner '
        "both = 3; } repeated Inner all = 1; }"
    ),
    'edition = "2023"; package p; message M { int32 a = 1; M m = 2; }',
]


@pytest.mark.parametrize("text", WRITTEN)
def test_files_are_read_as_protoc_reads_them(tmp_path: Path, text: str) -> None:
    (wanted,) = by_protoc([text], tmp_path)
    assert by_us(text) == wanted
    assert by_us(print_proto(read_proto(text))) == wanted
    assert by_protoc([print_proto(read_proto(text))], tmp_path) == [wanted]


@pytest.mark.parametrize("count", [FILES_QUICK, pytest.param(FILES, marks=pytest.mark.slow)])
def test_random_files_are_read_as_protoc_reads_them(tmp_path: Path, count: int) -> None:
    files = Files(count)
    texts = [text_of(files.file()) for _ in range(count)]
    for text, wanted in zip(texts, by_protoc(texts, tmp_path), strict=True):
        assert by_us(text) == wanted, text
        printed = print_proto(read_proto(text))
        assert places(built(Source("PROTOBUF", printed))) == places(built(Source("PROTOBUF", text))), text
        assert differences(Source("PROTOBUF", printed), Source("PROTOBUF", text)) == []
        assert print_proto(read_proto(printed)) == printed
        normal = print_proto(read_proto(text), is_normalized=True)
        assert print_proto(read_proto(normal), is_normalized=True) == normal


@pytest.mark.parametrize(
    "text",
    [
        'syntax = "proto3"; message M { required int32 a = 1; }',
        'syntax = "proto3"; message M { int32 a = 1; int32 b = 1; }',
        'syntax = "proto3"; message M { int32 a = 1; string a = 2; }',
        'syntax = "proto3"; message M { int32 a = 0; }',
        'syntax = "proto3"; message M { int32 a = 19500; }',
        'syntax = "proto3"; message M { Nothing n = 1; }',
        'syntax = "proto3"; message M { map<double, int32> m = 1; }',
        'syntax = "proto3"; message M { oneof o { repeated int32 a = 1; } }',
        'syntax = "proto3"; enum E { A = 1; }',
        'syntax = "proto3"; enum E { A = 0; B = 0; }',
        'syntax = "proto3"; message M { int32 a = 5; reserved 5; }',
        'syntax = "proto3"; message M { int32 a 1; }',
        'syntax = "proto3"; message M {',
        'syntax = "proto4"; message M {}',
        'syntax = "proto3"; message M {} message M {}',
        "message M { int32 a = 1; }",
    ],
)
def test_what_protoc_refuses_is_refused(tmp_path: Path, text: str, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "f.proto").write_text(text)
    assert protoc.main(["protoc", f"-I{tmp_path}", f"--descriptor_set_out={os.devnull}", "f.proto"]) != 0
    capfd.readouterr()
    with pytest.raises(InvalidSchema):
        built(Source("PROTOBUF", text))


@pytest.mark.parametrize("count", [PAIRS_QUICK, pytest.param(PAIRS, marks=pytest.mark.slow)])
def test_messages_of_a_compatible_schema_are_read(count: int) -> None:
    """Field by field: what both know has the same value, in every message of the file."""
    files = Files(count)
    compatible = 0
    for _ in range(count):
        file = files.file()
        old, new = (Source("PROTOBUF", text_of(each)) for each in (file, files.changed(file)))
        if differences(new, old):
            continue
        compatible += 1
        before, after = built(old), built(new)
        for name, descriptor in before.message_types_by_name.items():
            message = files.fill(message_factory.GetMessageClass(descriptor)())
            read = message_factory.GetMessageClass(after.message_types_by_name[name]).FromString(message.SerializeToString())
            for field, value in message.ListFields():
                known = read.DESCRIPTOR.fields_by_number.get(field.number)
                if known is not None and known.message_type is None:
                    found = getattr(read, known.name)
                    assert as_told(found) == as_told(value), (old.text, new.text, field.name)
    assert compatible > count / 4


def as_told(value: Any) -> Any:
    """A value without what types of one group show differently: text and bytes, whole numbers and truth."""
    if isinstance(value, bytes | str | float):
        return value.decode() if isinstance(value, bytes) else value
    if isinstance(value, int):
        return bool(value)
    return [as_told(each) for each in value]
