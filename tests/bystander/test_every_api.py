"""The request with the most elements of every API, sent over and over beside a bystander.

Two shapes: many topics (groups, resources) with nothing in them, and one with many partitions (members, settings).
"""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.hostile import attacks
from tests.support.hostile.attacking import attack
from tests.support.hostile.hostile_node import HostileNode, linux_only
from tests.support.peers.topics import make_topic

from ottla.broker.handlers import MODULES
from ottla.wire.apis import APIS
from ottla.wire.binding import Binding, binding_of
from ottla.wire.schema.model import INTEGER_RANGES, FieldSchema, StructSchema

pytestmark = [linux_only, pytest.mark.slow]

TOO_SLOW = {
    "AddPartitionsToTxn-wide": "one decision of the coordinator for each transaction",
    "DeleteTopics-wide": "one decision of the controller for all topics",
    "Metadata-wide": "creating topics is one decision of the controller",
    "Produce-wide": "Produce is parsed on the loop, because its size is that of its records",
}
"""Requests that hold the loop for up to 0.5 s of CPU with 60,000 elements, and why."""

ELEMENTS = 60_000
ATTACK_S = 1.5


@pytest.fixture(scope="module")
def node() -> Iterator[HostileNode]:
    with HostileNode(growth_bytes_max=250_000_000) as running:
        make_topic(running.bootstrap, "bystander")
        yield running


def largest(binding: Binding, schema: StructSchema, version: int, is_deep: bool, number: int = 0, top: bool = True) -> Any:
    """A struct in which one array has `ELEMENTS` elements: the outermost one, or the innermost."""
    made: Any = binding.classes[schema.name]()
    is_first = True
    for field in schema.fields:
        if version not in field.versions:
            continue
        if not field.is_array:
            if field.type == "string":
                setattr(made, field.attribute, "bystander" if is_deep else f"n{number}")
            elif field.type in INTEGER_RANGES and field.type != "int8" and not top:
                setattr(made, field.attribute, number % 30_000)
        elif is_first:
            is_first = False
            is_inner = field.struct is None or not any(inner.is_array for inner in field.struct.fields)
            count = (ELEMENTS if top else 0) if not is_deep else (ELEMENTS if is_inner else 1)
            setattr(made, field.attribute, [element(binding, field, version, is_deep, each) for each in range(count)])
    return made


def element(binding: Binding, field: FieldSchema, version: int, is_deep: bool, number: int) -> Any:
    if field.struct is not None:
        return largest(binding, field.struct, version, is_deep, number, top=False)
    if field.type == "string":
        return f"n{number}"
    return bytes(16) if field.type in ("uuid", "bytes") else number % 100


@pytest.mark.parametrize("is_deep", [False, True], ids=["wide", "deep"])
@pytest.mark.parametrize("name", sorted(APIS[key].name for key in MODULES))
def test_largest_request(request: pytest.FixtureRequest, node: HostileNode, name: str, is_deep: bool) -> None:
    if reason := TOO_SLOW.get(f"{name}-{'deep' if is_deep else 'wide'}"):
        request.applymarker(pytest.mark.xfail(reason=reason))
    api = next(api for api in APIS.values() if api.name == name)
    binding = binding_of(api.request_class)
    message = largest(binding, binding.schema.root, api.newest, is_deep)
    attack(node, [attacks.frame(message, api.newest)], 1, ATTACK_S)
