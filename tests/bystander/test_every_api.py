"""The request with the most elements of every API, sent over and over beside a bystander, from 1 and from 20 connections.

Three shapes: many topics (groups, resources) with nothing in them, one with many partitions (members, settings), and one topic
over and over, each time with another partition. Those that were the most expensive run in `make test`, the whole sweep in
`make test-all`.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.hostile.attacking import attack
from tests.support.hostile.hostile_node import HostileNode, linux_only
from tests.support.hostile.largest import largest_request
from tests.support.peers.topics import make_topic

from ottla.broker.requests.apis import ON_BROKER
from ottla.wire.apis import APIS

pytestmark = linux_only

QUICK = {
    ("Produce", "wide", 20),
}
ATTACK_S = 1.5
SHAPES = ("wide", "deep", "repeated")
NAMES = sorted(APIS[key].name for key in ON_BROKER)


def sweep() -> Iterator[Any]:
    for name in NAMES:
        for shape in SHAPES:
            for connections in (1, 20):
                is_quick = (name, shape, connections) in QUICK
                yield pytest.param(name, shape, connections, marks=() if is_quick else pytest.mark.slow)


@pytest.fixture(scope="module")
def node() -> Iterator[HostileNode]:
    with HostileNode(growth_bytes_max=250_000_000) as running:
        make_topic(running.bootstrap, "bystander")
        yield running


@pytest.mark.parametrize(("name", "shape", "connections"), list(sweep()))
def test_largest_request(node: HostileNode, name: str, shape: str, connections: int) -> None:
    attack(node, [largest_request(name, shape)], connections, ATTACK_S)


@pytest.mark.slow
@pytest.mark.parametrize("connections", [1, 20])
def test_largest_requests_of_all_apis_in_turn(node: HostileNode, connections: int) -> None:
    frames = [largest_request(name, shape) for name in NAMES for shape in SHAPES]
    attack(node, frames, connections, 10 * ATTACK_S)
