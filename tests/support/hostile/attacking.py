"""Attacks a node for some seconds and measures what that does to a bystander: its longest wait, and the node's memory."""

import contextlib
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from tests.support.hostile import attacks
from tests.support.hostile.bystander import Bystander
from tests.support.hostile.hostile_client import HostileClient
from tests.support.hostile.hostile_node import HostileNode

from ottla.records.compression import Codec

WAIT_S_MAX = 0.25
MEMORY_BYTES_MAX = 300_000_000
ATTACK_S = 3.0


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


def make_producers(port: int, topic: str, count: int) -> None:
    """Write one record as each of `count` producers."""
    with HostileClient(port) as client:
        for first in range(0, count, 500):
            requests = [
                attacks.produce(
                    topic, attacks.one_record(b"v", Codec.NONE, producer_id=number, producer_epoch=0, base_sequence=0)
                )
                for number in range(first, first + 500)
            ]
            client.send_bytes(b"".join(requests))
            for _ in requests:
                client.receive_frame()


def attack(node: HostileNode, frames: Sequence[bytes], connections: int, seconds: float = ATTACK_S) -> None:
    """Send `frames` over and over, pipelined, and check what it does to a bystander of topic `bystander`."""
    node.await_idle()  # clients of an earlier attack have gone, but the node may still work for them
    node.forget_peak()
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
