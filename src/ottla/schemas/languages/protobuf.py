"""Protobuf schemas: `.proto` text, or a FileDescriptorProto in base64 as some clients send it; resolved and compared.

Compared by field numbers, since names are not on the wire. Two types of one group of scalars read each other's bytes; enums may
change in every way.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from google.protobuf import descriptor_pb2 as pb
from google.protobuf import descriptor_pool
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field
from google.protobuf.message import DecodeError

from ottla.schemas.languages import InvalidSchema, Parsed, Source
from ottla.schemas.languages.proto_text import print_proto, read_proto

WELL_KNOWN = (
    "any",
    "api",
    "descriptor",
    "duration",
    "empty",
    "field_mask",
    "source_context",
    "struct",
    "timestamp",
    "type",
    "wrappers",
)
OWN_IMPORTS = {
    "confluent/meta.proto": """syntax = "proto3";
package confluent;
import "google/protobuf/descriptor.proto";
message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; }
extend google.protobuf.FileOptions { Meta file_meta = 1088; }
extend google.protobuf.MessageOptions { Meta message_meta = 1088; }
extend google.protobuf.FieldOptions { Meta field_meta = 1088; }
extend google.protobuf.EnumOptions { Meta enum_meta = 1088; }
extend google.protobuf.EnumValueOptions { Meta enum_value_meta = 1088; }
""",
    "confluent/type/decimal.proto": """syntax = "proto3";
package confluent.type;
message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }
""",
}
_GROUPS = (
    ("int32", "int64", "uint32", "uint64", "bool", "enum"),
    ("sint32", "sint64"),
    ("string", "bytes"),
    ("fixed32", "sfixed32"),
    ("fixed64", "sfixed64"),
    ("float",),
    ("double",),
)
_NAMES = {number: name.removeprefix("TYPE_").lower() for name, number in Field.Type.items()}
_GROUP_OF = {name: group for group, names in enumerate(_GROUPS) for name in names}
_PACKED = frozenset(_GROUP_OF) - {"string", "bytes"}
_DIFFERENCES_MAX = 50
FILE = "schema.proto"


def parse(source: Source) -> Parsed:
    """The texts to store."""
    file = _file(source.text)
    _built(source, file)
    return Parsed(print_proto(file), print_proto(file, is_normalized=True))


def differences(reader: Source, writer: Source, policy: str = "STRICT") -> list[str]:
    """Why messages of `writer` cannot be read with `reader`."""
    comparison = _Comparison(reader, writer)
    found = []
    for each in comparison.run():
        found.append(each)
        if len(found) == _DIFFERENCES_MAX:
            break
    return found


def serialized(source: Source) -> str:
    """The schema as a FileDescriptorProto in base64."""
    return base64.b64encode(_file(source.text).SerializeToString()).decode()


def built(source: Source) -> Any:
    """The resolved file, to make messages with."""
    return _built(source, _file(source.text))


def _file(text: str) -> pb.FileDescriptorProto:
    stripped = text.strip()
    if stripped and not any(each in stripped for each in ";{} \n"):
        try:
            return pb.FileDescriptorProto.FromString(base64.b64decode(stripped, validate=True))
        except (binascii.Error, ValueError, DecodeError):
            raise InvalidSchema("it is neither .proto text nor a FileDescriptorProto in base64") from None
    return read_proto(text)


def _built(source: Source, file: pb.FileDescriptorProto) -> Any:
    """The resolved file. Raises if a type or an import is not there."""
    pool = descriptor_pool.DescriptorPool()
    imports = {each.name: each.text for each in source.imports}
    added: set[str] = set()

    def add(name: str, wanted_by: str) -> None:
        if name in added:
            return
        added.add(name)
        if name in imports or name in OWN_IMPORTS:
            found = _file(imports.get(name) or OWN_IMPORTS[name])
        else:
            found = _well_known(name)
            if found is None:
                raise InvalidSchema(f"{wanted_by} imports {name!r}, which is not there: add it to the references by this name")
        for each in found.dependency:
            add(each, name)
        _add(pool, found, name)

    for each in file.dependency:
        add(each, "it")
    return _add(pool, file, FILE)


def _well_known(name: str) -> pb.FileDescriptorProto | None:
    folder, _, short = name.rpartition("/")
    module = short.removesuffix(".proto")
    if folder == "google/protobuf" and module in WELL_KNOWN:
        file = pb.FileDescriptorProto()
        import_module(f"google.protobuf.{module}_pb2").DESCRIPTOR.CopyToProto(file)
        return file
    if folder == "google/type" and module.replace("_", "").isalnum():
        try:
            types = import_module(f"google.type.{module}_pb2")
        except ImportError:
            return None
        file = pb.FileDescriptorProto()
        types.DESCRIPTOR.CopyToProto(file)
        return file
    return None


def _add(pool: descriptor_pool.DescriptorPool, file: pb.FileDescriptorProto, name: str) -> Any:
    plain = pb.FileDescriptorProto()
    plain.CopyFrom(file)
    plain.name = name
    _drop_options(plain)
    try:
        pool.AddSerializedFile(plain.SerializeToString())
        return pool.FindFileByName(name)
    except (TypeError, KeyError, ValueError) as problem:
        text = (
            str(problem)
            .replace("Couldn't build proto file into descriptor pool: ", "")
            .replace("couldn't build proto file into descriptor pool: ", "")
        )
        raise InvalidSchema(text) from None


def _drop_options(message: Any) -> None:
    """Options that were only read, not understood, cannot be built; what they say does not change the bytes of a message."""
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for each in list(value) if field.is_repeated else [value]:
            if field.name == "options":
                each.ClearField("uninterpreted_option")
            else:
                _drop_options(each)


class _Comparison:
    def __init__(self, reader: Source, writer: Source) -> None:
        self._new_file, self._old_file = _built(reader, _file(reader.text)), _built(writer, _file(writer.text))
        self._places = [{each.name: (each.subject, each.version) for each in source.imports} for source in (reader, writer)]
        self._compared: set[tuple[str, str]] = set()

    def run(self) -> Iterator[str]:
        new, old = self._new_file, self._old_file
        if new.package != old.package:
            yield _told("PACKAGE_CHANGED", "", f"the package was {old.package!r}, and is {new.package!r}")
            return
        here = dict(_messages(new.message_types_by_name.values(), ""))
        for path, message in _messages(old.message_types_by_name.values(), ""):
            if path not in here:
                yield _told("MESSAGE_REMOVED", path, f"message {path} was removed")
            else:
                yield from self._message(here[path], message, path)

    def _message(self, new: Any, old: Any, path: str) -> Iterator[str]:
        pair = (new.full_name, old.full_name)
        if pair in self._compared:
            return
        self._compared.add(pair)
        now, before = dict(new.fields_by_number), dict(old.fields_by_number)
        for number in sorted(before):
            place = f"{path}/{number}"
            if number not in now:
                yield from self._removed(new, before[number], place)
            else:
                yield from self._field(now[number], before[number], place)
        for number in sorted(now.keys() - before.keys()):
            if now[number].is_required:
                yield _told(
                    "REQUIRED_FIELD_ADDED", f"{path}/{number}", f"field '{now[number].name}' was added, and is required"
                )
        yield from self._oneofs(new, old, path)

    def _removed(self, new: Any, old: Any, place: str) -> Iterator[str]:
        if old.is_required:
            yield _told("REQUIRED_FIELD_REMOVED", place, f"the required field '{old.name}' was removed")
        oneof = _oneof(old)
        if oneof is not None and any(
            each.number in new.fields_by_number and _oneof(new.fields_by_number[each.number]) for each in oneof.fields
        ):
            yield _told(
                "ONEOF_FIELD_REMOVED", place, f"'{old.name}' was removed from the oneof '{oneof.name}', which is still there"
            )

    def _oneofs(self, new: Any, old: Any, path: str) -> Iterator[str]:
        for oneof in filter(None, map(_real, new.oneofs)):
            moved = [
                each
                for each in oneof.fields
                if each.number in old.fields_by_number and _oneof(old.fields_by_number[each.number]) is None
            ]
            had = [
                each
                for each in oneof.fields
                if each.number in old.fields_by_number and _oneof(old.fields_by_number[each.number]) is not None
            ]
            if len(moved) > 1:
                names = ", ".join(each.name for each in moved)
                yield _told(
                    "MULTIPLE_FIELDS_MOVED_TO_ONEOF",
                    f"{path}/{oneof.name}",
                    f"{names} were moved into the oneof '{oneof.name}'",
                )
            elif moved and had:
                text = f"'{moved[0].name}' was moved into the oneof '{oneof.name}', which was there already"
                yield _told("FIELDS_MOVED_TO_EXISTING_ONEOF", f"{path}/{oneof.name}", text)

    def _field(self, new: Any, old: Any, place: str) -> Iterator[str]:
        kind, before = _kind(new), _kind(old)
        if kind != before:
            yield _told("FIELD_KIND_CHANGED", place, f"'{new.name}' was a {before} field, and is a {kind} field")
            return
        if new.is_required != old.is_required:
            word = "ADDED" if new.is_required else "REMOVED"
            yield _told(
                f"REQUIRED_FIELD_{word}", place, f"'{new.name}' is {'now' if new.is_required else 'no longer'} required"
            )
        if kind == "map":
            for part in ("key", "value"):
                yield from self._field(
                    new.message_type.fields_by_name[part], old.message_type.fields_by_name[part], f"{place}/{part}"
                )
        elif kind == "message":
            name, other = _relative(new.message_type), _relative(old.message_type)
            if name != other:
                yield _told("FIELD_NAMED_TYPE_CHANGED", place, f"'{new.name}' was a {other}, and is a {name}")
            elif not self._is_same_place(new.message_type.file.name, old.message_type.file.name):
                yield from self._message(new.message_type, old.message_type, f"{place}/{name}")
        else:
            own, other = _NAMES[new.type], _NAMES[old.type]
            if _GROUP_OF[own] != _GROUP_OF[other]:
                yield _told("FIELD_SCALAR_KIND_CHANGED", place, f"'{new.name}' was {other}, and is {own}")
            elif own in _PACKED and new.is_repeated != old.is_repeated:
                now, was = ("repeated", "single") if new.is_repeated else ("single", "repeated")
                yield _told("FIELD_NUMERIC_LABEL_CHANGED", place, f"'{new.name}' was {was}, and is {now}")

    def _is_same_place(self, new: str, old: str) -> bool:
        """Whether both types come from the same version of the same subject."""
        return self._places[0].get(new, 0) == self._places[1].get(old, 1)


def _told(kind: str, path: str, text: str) -> str:
    return f"{kind} at {path or '/'}: {text}"


def _messages(messages: Any, path: str) -> Iterator[tuple[str, Any]]:
    for each in messages:
        if not each.GetOptions().map_entry:
            own = f"{path}{each.name}"
            yield own, each
            yield from _messages(each.nested_types, f"{own}.")


def _real(oneof: Any) -> Any:
    """A oneof that was written; None for the one behind an `optional` field of proto3."""
    return None if len(oneof.fields) == 1 and oneof.name == f"_{oneof.fields[0].name}" else oneof


def _oneof(field: Any) -> Any:
    return None if field.containing_oneof is None else _real(field.containing_oneof)


def _kind(field: Any) -> str:
    if field.message_type is None:
        return "scalar"
    return "map" if field.message_type.GetOptions().map_entry else "message"


def _relative(message: Any) -> str:
    name: str = message.full_name
    return name.removeprefix(f"{message.file.package}.") if message.file.package else name
