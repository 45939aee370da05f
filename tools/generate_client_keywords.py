"""Writes src/ottla/client/keywords.py, the keywords of the clients for type checkers, from the tables: `make generate`.

The output is checked in, and a test fails when it is stale. `--check` writes nothing and fails if the file is stale.
"""

from __future__ import annotations

import sys
from pathlib import Path

from documents import write_or_check

from ottla.config.client.build import Treatment, treatment_of
from ottla.config.client.kinds import ADMIN, CONSUMER, PRODUCER, ClientKind
from ottla.config.client.security import OWN_KEYWORDS, TOKEN
from ottla.config.values import ConfigType

TARGET = Path(__file__).resolve().parent.parent / "src" / "ottla" / "client" / "keywords.py"

TYPES = {
    ConfigType.BOOLEAN: "bool | str",
    ConfigType.CLASS: "object",
    ConfigType.DOUBLE: "float | str",
    ConfigType.INT: "int | str",
    ConfigType.LIST: "str | Sequence[str]",
    ConfigType.LONG: "int | str",
    ConfigType.PASSWORD: "str",
    ConfigType.SHORT: "int | str",
    ConfigType.STRING: "str",
}
OTHER_TYPES = {
    "acks": "int | str",
    "bootstrap.controllers": "Servers",
    "interceptor.classes": "object",
    "partition.assignment.strategy": "object",
}
WORLD = "world: ClientWorld | None"
FORMS = ("Bytes", "Text", "Own", "Named")
"""How keys and values are given: as bytes, as text, with a serializer of the user's, in another form that has a name."""

HEAD = '''\
"""The keywords that the clients take, for type checkers: nothing imports this at run time.

Written by `tools/generate_client_keywords.py` from the tables in `src/ottla/config/client`: do not edit. Settings that Ottla
refuses are left out. The form of keys and values tells their types: `Unpack[ProducerBytesText]` are the keywords of a producer
whose keys are bytes and whose values are text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypedDict

from ottla.client.type_parameters import AsBytes, AsNamed, AsText, Deserializing, K_own, Serializing, Servers, V_own
from ottla.client.world import ClientWorld
'''


def render() -> str:
    parts = [HEAD]
    parts += [_table(PRODUCER, ["interceptors: object", "partitioner: object", WORLD])]
    parts += _forms(PRODUCER, "serializer", "Serializing")
    parts += [_table(CONSUMER, ["interceptors: object", WORLD]), *_forms(CONSUMER, "deserializer", "Deserializing")]
    parts += [_table(ADMIN, [])]
    return "\n\n".join(part.rstrip("\n") + "\n" for part in parts)


def _table(kind: ClientKind, more: list[str]) -> str:
    """The settings of one kind of client, without those whose types depend on the form of keys and values."""
    lines = [f"class {kind.name.title()}Keywords(TypedDict, total=False):"]
    lines.append(f'    """The settings of {_article(kind.name)} {kind.name}, with `_` for `.`. None: not given."""\n')
    for name in sorted(kind.table):
        if name == "bootstrap.servers" or name.endswith("serializer") or treatment_of(name)[0] is Treatment.REFUSED:
            continue
        key = kind.table[name]
        shown = OTHER_TYPES.get(name, TYPES[key.type])
        lines.append(f"    {name.replace('.', '_')}: {shown}{'' if shown == 'object' else ' | None'}")
    lines += [f"    {name}: {'Callable[[], Any]' if name == TOKEN else 'str'} | None" for name in OWN_KEYWORDS]
    lines += [f"    {each}" for each in more]
    return "\n".join(lines)


def _forms(kind: ClientKind, noun: str, own: str) -> list[str]:
    """The keywords for each form of keys and values, and for those that are not known."""
    title = kind.name.title()
    found = []
    for part in ("key", "value"):
        name, variable = f"{title}{part.title()}", f"{part[0].upper()}_own"
        found.append(f"class {name}Bytes(TypedDict, total=False):\n    {part}_{noun}: AsBytes")
        found.append(f"class {name}Text(TypedDict):\n    {part}_{noun}: AsText")
        found.append(f"class {name}Own(TypedDict, Generic[{variable}]):\n    {part}_{noun}: {own}[{variable}]")
        found.append(f"class {name}Named(TypedDict):\n    {part}_{noun}: AsNamed")
    for key in FORMS:
        for value in FORMS:
            bases = [f"{title}Keywords", _base(f"{title}Key{key}", "K_own"), _base(f"{title}Value{value}", "V_own")]
            found.append(f"class {title}{key}{value}({', '.join(bases)}): ...")
    found.append(f"class {title}Any({title}Keywords, total=False):\n    key_{noun}: Any\n    value_{noun}: Any")
    return found


def _base(name: str, variable: str) -> str:
    return f"{name}[{variable}]" if name.endswith("Own") else name


def _article(noun: str) -> str:
    return "an" if noun[0] in "aeiou" else "a"


if __name__ == "__main__":
    sys.exit(write_or_check(TARGET, render()))
