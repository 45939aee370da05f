"""The golden bytes of all messages, written by Apache Kafka's own classes (tools/golden/MakeWireGolden.java)."""

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.cases.wire_messages import all_messages

from ottla.wire.base import Message

PATH = Path(__file__).parents[2] / "golden/wire/messages.tsv.gz"


class Golden(NamedTuple):
    """One message as Apache Kafka wrote it, and as its JSON converter shows it."""

    cls: type[Message]
    version: int
    fill: str
    data: bytes
    json: dict[str, Any]


@cache
def golden_cases() -> tuple[Golden, ...]:
    """All golden messages, in the order of the file."""
    classes = {cls.__name__: cls for cls in all_messages()}
    rows = (line.split("\t") for line in gzip.decompress(PATH.read_bytes()).decode().splitlines())
    return tuple(
        Golden(classes[name], int(version), fill, bytes.fromhex(data), json.loads(shown))
        for name, version, fill, data, shown in rows
    )
