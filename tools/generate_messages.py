"""Writes src/ottla/wire/messages/*.py and the API table from the schema table: `make generate`.

One module per API holds its request, response and their structs; one module per internal log (or group of records) holds its
records. The output is checked in, and a test fails when it is stale. `--check` writes nothing and names stale files.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ottla.wire.schema import FieldSchema, MessageSchema, StructSchema, parse_message, parse_table
from ottla.wire.schema.model import snake_case

ROOT = Path(__file__).resolve().parent.parent
SCHEMAS = ROOT / "src/ottla/wire/schema"
MESSAGES = ROOT / "src/ottla/wire/messages"

DATA_MODULES = {
    "consumer_protocol": ("ConsumerProtocolAssignment", "ConsumerProtocolSubscription"),
    "control_records": (
        "ControlRecordTypeSchema",
        "EndTxnMarker",
        "KRaftVersionRecord",
        "LeaderChangeMessage",
        "SnapshotFooterRecord",
        "SnapshotHeaderRecord",
        "VotersRecord",
    ),
    "headers": ("RequestHeader", "ResponseHeader"),
    "principal": ("DefaultPrincipalData",),
    "producer_snapshot": ("ProducerSnapshot",),
    "quorum_state": ("QuorumStateData",),
}
COORDINATOR_MODULES = (  # the first prefix that matches decides
    ("Transaction", "transaction_records"),
    ("ShareSnapshot", "share_state_records"),
    ("ShareUpdate", "share_state_records"),
    ("ShareGroup", "share_group_records"),
    ("StreamsGroup", "streams_group_records"),
    ("ConsumerGroup", "consumer_group_records"),
    ("GroupMetadata", "classic_group_records"),
    ("OffsetCommit", "offset_records"),
    ("LegacyOffsetCommit", "offset_records"),
)
PLAIN_TYPES = {"bool": "bool", "float64": "float", "string": "str", "bytes": "bytes", "uuid": "Uuid", "records": "Records"}


def module_of(schema: MessageSchema, table: str, api_names: dict[int, str]) -> str:
    if schema.kind in ("request", "response"):
        return api_names[schema.key]
    if table == "coordinator":
        return next(module for prefix, module in COORDINATOR_MODULES if schema.name.startswith(prefix))
    for module, names in DATA_MODULES.items():
        if schema.name in names:
            return module
    return {"metadata": "metadata_records", "disk": "remote_log_records"}[table]


def read_apis() -> list[list[str]]:
    lines = (SCHEMAS / "apis.txt").read_text().splitlines()
    return [[cell.strip() for cell in line.split("|")] for line in lines if line and not line.startswith("#")]


class Module:
    """The messages of one generated module, and the class names of their structs."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.messages: list[tuple[MessageSchema, str]] = []

    def class_name(self, message: MessageSchema, struct: StructSchema) -> str:
        """Kafka's name of the struct, prefixed with the message's name if two messages of the module use it."""
        if struct is message.root:
            return message.name
        users = sum(struct.name in other.structs or struct.name == other.name for other, _ in self.messages)
        return struct.name if users == 1 else message.name + struct.name

    def text(self) -> str:
        body = "\n\n\n".join(part for message, source in self.messages for part in self.message_parts(message, source))
        names = ", ".join(message.name for message, _ in self.messages)
        title = names if len(names) < 100 else f"{self.messages[0][0].name} to {self.messages[-1][0].name}"
        imports = ["from ottla.ids import ZERO_UUID, Uuid"] if "Uuid" in body else []
        base = [word for word in ("EMPTY", "NEW", "Bytes", "Message", "Records", "Struct") if f"{word}" in words(body)]
        imports.append(f"from ottla.wire.base import {', '.join(base)}")
        head = f'"""{title}. Generated from the schema table by tools/generate_messages.py: do not edit."""'
        return f"{head}\n\nfrom __future__ import annotations\n\n" + "\n".join(imports) + f"\n\n\n{body}\n"

    def message_parts(self, message: MessageSchema, source: str) -> list[str]:
        structs = list(message.structs.values())
        parts = [self.class_text(message, struct) for struct in reversed(structs)]
        classes = "".join(f"{self.class_name(message, struct)}, " for struct in structs)
        classes = classes.rstrip(" ") if len(structs) == 1 else classes.rstrip(", ")
        key = f"\n    KEY = {message.key}" if message.key >= 0 else ""
        closing = f'\n{key}\n    SCHEMA = """\\\n{source}\n"""\n    STRUCTS = ({classes})'
        return [*parts, self.class_text(message, message.root) + closing]

    def class_text(self, message: MessageSchema, struct: StructSchema) -> str:
        base = "Message" if struct is message.root else "Struct"
        slots = ", ".join(f'"{field.attribute}"' for field in struct.fields)
        comma = "," if len(struct.fields) == 1 else ""
        lines = [f"class {self.class_name(message, struct)}({base}):", f"    __slots__ = ({slots}{comma})", ""]
        lines.append("    def __init__(")
        lines.append("        self,")
        if struct.fields:
            lines.append("        *,")
        lines += [
            f"        {field.attribute}: {self.annotation(message, field)} = {default_argument(field)},"
            for field in struct.fields
        ]
        lines.append("    ) -> None:")
        lines += [f"        self.{field.attribute} = {self.assigned(message, field)}" for field in struct.fields]
        lines.append("        self.unknown_tags = None")
        return "\n".join(lines)

    def annotation(self, message: MessageSchema, field: FieldSchema) -> str:
        if field.struct is not None:
            name = self.class_name(message, field.struct)
        elif field.zerocopy:
            name = "Bytes"
        else:
            name = PLAIN_TYPES.get(field.type, "int")
        if field.is_array:
            name = f"list[{name}]"
        return f"{name} | None" if not field.nullable.is_empty or field.default() is None else name

    def assigned(self, message: MessageSchema, field: FieldSchema) -> str:
        argument, default = field.attribute, default_argument(field)
        if default == "EMPTY":
            return f"[] if {argument} is EMPTY else {argument}"
        if default == "NEW" and field.struct is not None:
            return f"{self.class_name(message, field.struct)}() if {argument} is NEW else {argument}"
        return argument


def words(text: str) -> set[str]:
    return set("".join(letter if letter.isalnum() or letter == "_" else " " for letter in text).split())


def default_argument(field: FieldSchema) -> str:
    default = field.default()
    if isinstance(default, list):
        return "EMPTY"
    if isinstance(default, StructSchema):
        return "NEW"
    if default is not None and field.type == "uuid":
        return "ZERO_UUID"
    return repr(default).replace("'", '"')


def build() -> dict[str, str]:
    """Every generated file: its name to its text."""
    apis = read_apis()
    api_names = {int(row[0]): snake_case(row[1]) for row in apis}
    modules: dict[str, Module] = {}
    listeners: dict[int, tuple[str, ...]] = {}
    flexible: dict[int, int] = {}
    for table in ("rpc", "coordinator", "metadata", "disk"):
        for source in parse_table((SCHEMAS / f"{table}.txt").read_text()).values():
            schema = parse_message(source)
            if schema.kind == "request":
                listeners[schema.key] = schema.listeners
                flexible[schema.key] = -1 if schema.flexible.is_empty else schema.flexible.low
            if schema.versions.is_empty:
                continue
            name = module_of(schema, table, api_names)
            modules.setdefault(name, Module(name)).messages.append((schema, source))
    files = {f"{name}.py": module.text() for name, module in modules.items()}
    files["__init__.py"] = (
        '"""The message classes, one module per API or log. Generated by tools/generate_messages.py: do not edit.\n\n'
        'Import the module you need: this package imports none, because all of them together cost too much at start-up.\n"""\n'
    )
    files["../api_table.py"] = api_table(apis, listeners, flexible)
    return files


def api_table(apis: list[list[str]], listeners: dict[int, tuple[str, ...]], flexible: dict[int, int]) -> str:
    lines = [
        '"""The rows behind `ottla.wire.apis`. Generated from the schema table by tools/generate_messages.py: do not edit."""',
        "",
        "from typing import Final",
        "",
        "# key, name, oldest, newest, flexible from (-1: never), listeners, cluster action, forwardable, unstable",
        "ROWS: tuple[tuple[int, str, int, int, int, str, bool, bool, bool], ...] = (",
    ]
    for key_text, name, low, high, cluster, forwardable, *unstable in apis:
        key = int(key_text)
        row = (key, name, int(low), int(high), flexible[key], ",".join(listeners[key]))
        row += (cluster == "true", forwardable == "true", bool(unstable))
        lines.append(f"    {row!r},".replace("'", '"'))
    lines += [")", "", "", "class ApiKey:", '    """The numbers of the APIs, by name."""', ""]
    lines += [f"    {snake_case(name).upper()}: Final = {key}" for key, name, *_ in apis]
    return "\n".join([*lines, ""])


def main() -> int:
    files = build()
    present = {path.name for path in MESSAGES.glob("*.py")}
    stale = sorted(present - set(files))
    for name, text in files.items():
        path = MESSAGES / name
        if not path.exists() or path.read_text() != text:
            stale.append(name)
            if "--check" not in sys.argv:
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)
    for name in present - set(files):
        if "--check" not in sys.argv:
            (MESSAGES / name).unlink()
    print(f"{len(files)} files, {len(stale)} {'stale' if '--check' in sys.argv else 'rewritten'}: {' '.join(stale)}")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
