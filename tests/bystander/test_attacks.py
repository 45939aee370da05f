"""One client cannot stop the others: expensive requests, from 1 and from 20 connections, beside a client that produces.

Each test attacks a node for a few seconds. The bystander's longest wait is at most `WAIT_S_MAX` more than before the attack,
and the node's memory stays below `MEMORY_BYTES_MAX`. The cases are those of docs/decisions/0080.
"""

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.support.hostile import attacks
from tests.support.hostile.attacks import MEGABYTE
from tests.support.hostile.bystander import Bystander
from tests.support.hostile.hostile_client import HostileClient
from tests.support.hostile.hostile_node import HostileNode, linux_only
from tests.support.logs.batches import T0
from tests.support.peers.topics import make_topic

from ottla.records.compression import Codec

pytestmark = linux_only

WAIT_S_MAX = 0.25
MEMORY_BYTES_MAX = 300_000_000
ATTACK_S = 3.0
PIPELINE = 400


@pytest.fixture(scope="module")
def node() -> Iterator[HostileNode]:
    with HostileNode(growth_bytes_max=200_000_000) as running:
        make_topic(running.bootstrap, "bystander")
        yield running


def keep_sending(client: HostileClient, frames: Sequence[bytes], until_s: float) -> None:
    """Send frame after frame without waiting for replies, which are read and dropped."""
    with contextlib.suppress(OSError):
        client.socket.settimeout(0.01)
        number, rest = 0, b""
        while time.monotonic() < until_s:
            rest = rest or frames[number % len(frames)]
            with contextlib.suppress(TimeoutError):
                sent = client.socket.send(rest)
                rest = rest[sent:]
                number += not rest
                continue
            with contextlib.suppress(TimeoutError):
                while client.socket.recv(1 << 20):
                    pass


def attack(node: HostileNode, frames: Sequence[bytes], connections: int, seconds: float = ATTACK_S) -> None:
    """Send `frames` over and over, pipelined, and check what it does to a bystander."""
    with Bystander(node.port, "bystander", node.pid) as before:
        time.sleep(1)
    loop_s = loop_cpu_s(node)
    with contextlib.ExitStack() as stack, Bystander(node.port, "bystander", node.pid) as during:
        clients = [stack.enter_context(node.connect()) for _ in range(connections)]
        until_s = time.monotonic() + seconds
        threads = [threading.Thread(target=keep_sending, args=(client, frames, until_s)) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    print(
        f"\n{connections} connections: worst of {during.count} waits {during.worst_s:.3f} s "
        f"(by the clock {during.worst_clock_s:.3f}, before {before.worst_s:.3f}), "
        f"loop {loop_cpu_s(node) - loop_s:.2f} s CPU, peak {node.memory_bytes_peak / 1e6:.0f} MB"
    )
    assert during.worst_s - before.worst_s <= WAIT_S_MAX
    assert node.memory_bytes_peak <= MEMORY_BYTES_MAX


def loop_cpu_s(node: HostileNode) -> float:
    """Processor time of the main thread, which runs the event loop."""
    fields = Path(f"/proc/{node.pid}/task/{node.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


@pytest.mark.parametrize("connections", [1, 20])
@pytest.mark.parametrize(("codec", "level"), [("gzip", 9), ("lz4", 17), ("zstd", 22)])
def test_recompression(node: HostileNode, codec: str, level: int, connections: int) -> None:
    topic = f"{codec}-{connections}"
    make_topic(node.bootstrap, topic, configs={"compression.type": codec, f"compression.{codec}.level": level})
    if codec == "zstd":  # what takes zstd long does not become small with another codec
        batch = attacks.one_record(bytes(31 * MEGABYTE), Codec.GZIP)
    else:
        batch = attacks.one_record(attacks.two_letters(31 * MEGABYTE), Codec.ZSTD, level=19)
    assert len(batch) < 200_000
    attack(node, [attacks.produce(topic, batch)], connections)


@pytest.mark.parametrize("connections", [1, 20])
def test_lookup_by_time_in_batches_whose_headers_lie(node: HostileNode, connections: int) -> None:
    topic = f"lying-{connections}"
    make_topic(node.bootstrap, topic)
    with node.connect() as client:
        for _ in range(10):
            client.send_bytes(attacks.produce(topic, attacks.lying_bomb()))
            client.receive(0, 9)
    attack(node, [attacks.offsets_by_time(topic, T0 + 500_000)], connections)


@pytest.mark.parametrize("connections", [1, 20])
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


@pytest.mark.parametrize("connections", [1, 20])
def test_bombs_for_a_compacted_topic(node: HostileNode, connections: int) -> None:
    topic = f"compacted-{connections}"
    make_topic(node.bootstrap, topic, configs={"cleanup.policy": "compact"})
    attack(node, [attacks.produce(topic, attacks.one_record(bytes(30 * MEGABYTE)))], connections)
