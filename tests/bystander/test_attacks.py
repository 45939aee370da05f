"""One client cannot stop the others: expensive requests, from 1 and from 20 connections, beside a client that produces.

Each test attacks a node for a few seconds. The bystander's longest wait is at most `WAIT_S_MAX` more than before the attack,
and the node's memory stays below `MEMORY_BYTES_MAX`. The cases are those of docs/decisions/0080.
"""

from collections.abc import Iterator

import pytest
from tests.support.hostile import attacks
from tests.support.hostile.attacking import attack
from tests.support.hostile.attacks import MEGABYTE
from tests.support.hostile.hostile_node import HostileNode, linux_only
from tests.support.logs.batches import T0
from tests.support.peers.topics import make_topic

from ottla.records.compression import Codec

pytestmark = linux_only
slow = pytest.mark.slow
CONNECTIONS = [pytest.param(1, marks=slow), 20]


@pytest.fixture(scope="module")
def node() -> Iterator[HostileNode]:
    with HostileNode(growth_bytes_max=200_000_000) as running:
        make_topic(running.bootstrap, "bystander")
        yield running


@pytest.mark.parametrize("connections", CONNECTIONS)
@pytest.mark.parametrize(
    ("codec", "level"), [("gzip", 9), pytest.param("lz4", 17, marks=slow), pytest.param("zstd", 22, marks=slow)]
)
def test_recompression(node: HostileNode, codec: str, level: int, connections: int) -> None:
    topic = f"{codec}-{connections}"
    make_topic(node.bootstrap, topic, configs={"compression.type": codec, f"compression.{codec}.level": level})
    if codec == "zstd":  # what takes zstd long does not become small with another codec
        batch = attacks.one_record(bytes(31 * MEGABYTE), Codec.GZIP)
    else:
        batch = attacks.one_record(attacks.two_letters(31 * MEGABYTE), Codec.ZSTD, level=19)
    assert len(batch) < 200_000
    attack(node, [attacks.produce(topic, batch)], connections)


@pytest.mark.parametrize("connections", CONNECTIONS)
def test_lookup_by_time_in_batches_whose_headers_lie(node: HostileNode, connections: int) -> None:
    topic = f"lying-{connections}"
    make_topic(node.bootstrap, topic)
    with node.connect() as client:
        for _ in range(10):
            client.send_bytes(attacks.produce(topic, attacks.lying_bomb()))
            client.receive(0, 9)
    attack(node, [attacks.offsets_by_time(topic, T0 + 500_000)], connections)


@pytest.mark.parametrize("connections", CONNECTIONS)
def test_producers_of_one_partition_named_1000_times(node: HostileNode, connections: int) -> None:
    topic = f"producers-{connections}"
    make_topic(node.bootstrap, topic)
    with node.connect() as client:
        for first in range(0, 20_000, 500):
            requests = [
                attacks.produce(
                    topic, attacks.one_record(b"v", Codec.NONE, producer_id=number, producer_epoch=0, base_sequence=0)
                )
                for number in range(first, first + 500)
            ]
            client.send_bytes(b"".join(requests))
            for _ in requests:
                client.receive_frame()
    attack(node, [attacks.producers(topic, 1000)], connections)


@pytest.mark.parametrize("connections", CONNECTIONS)
def test_bombs_for_a_compacted_topic(node: HostileNode, connections: int) -> None:
    topic = f"compacted-{connections}"
    make_topic(node.bootstrap, topic, configs={"cleanup.policy": "compact"})
    attack(node, [attacks.produce(topic, attacks.one_record(bytes(30 * MEGABYTE)))], connections)
