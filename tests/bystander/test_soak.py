"""A soak: mixed clients and one attacker for ten minutes. Nothing is lost, nobody starves, the node does not grow.

`OTTLA_SOAK_S` is the length in seconds: `OTTLA_SOAK_S=3600 pytest -m slow tests/bystander/test_soak.py` runs an hour.

The attacker sends the expensive requests of the other files, one kind after the other, pipelined on one connection at a time.
The clients work in rounds, each with new topics: what a round sent is read and compared at its end.
"""

import contextlib
import itertools
import os
import threading
import time
from collections.abc import Iterator

import pytest
from tests.support.hostile import attacks
from tests.support.hostile.attacking import MEMORY_BYTES_MAX, WAIT_S_MAX, keep_sending
from tests.support.hostile.attacks import MEGABYTE
from tests.support.hostile.bystander import Bystander
from tests.support.hostile.hostile_node import HostileNode, linux_only
from tests.support.hostile.largest import largest_request
from tests.support.logs.batches import T0
from tests.support.peers.load import Load
from tests.support.peers.ottla_clients import Faces
from tests.support.peers.topics import make_topic

from ottla.broker.requests.apis import ON_BROKER
from ottla.records.compression import Codec
from ottla.wire.apis import APIS
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

SOAK_S = float(os.environ.get("OTTLA_SOAK_S", "600"))
pytestmark = [linux_only, pytest.mark.slow, pytest.mark.timeout(SOAK_S * 2 + 300)]

ROUND_S = 30.0
ATTACK_S = 2.0
GROWTH_BYTES_MAX = 60_000_000
"""From the end of the first half to that of the second, each time after the node has done all that was sent to it."""


def attack_frames() -> Iterator[list[bytes]]:
    """The attacks, one after the other, without end."""
    prepared = [
        [attacks.produce("gzip", attacks.one_record(attacks.two_letters(31 * MEGABYTE), Codec.ZSTD, level=19))],
        [attacks.produce("compacted", attacks.one_record(bytes(30 * MEGABYTE)))],
        [attacks.offsets_by_time("lying", T0 + 500_000)],
        [attacks.producers("bystander", 1000)],
    ]
    # Fetch comes first: the sessions that it fills up to their limit stay, which is no growth.
    names = sorted((APIS[key].name for key in ON_BROKER), key=lambda name: (name != "Fetch", name))
    shapes = itertools.cycle([(name, shape) for name in names for shape in ("wide", "deep", "repeated")])
    for expensive in itertools.cycle(prepared):
        yield expensive
        for name, shape in itertools.islice(shapes, 5):
            yield [largest_request(name, shape)]


class Attacker:
    """A thread that attacks `node` with `frames` until the block ends."""

    def __init__(self, node: HostileNode, frames: Iterator[list[bytes]]) -> None:
        self._node = node
        self._frames = frames
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.attacks = 0

    def _run(self) -> None:
        for frames in self._frames:
            if self._is_over.is_set():
                return
            with contextlib.suppress(OSError), self._node.connect() as client:
                keep_sending(client, frames, time.monotonic() + ATTACK_S)
            self.attacks += 1

    def __enter__(self) -> "Attacker":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()


def work_for_a_round(node: HostileNode, number: int, seconds: float) -> int:
    """Clients of each kind send and read for so long; returns how many records, all of which were checked."""
    topics = [f"round-{number}-{kind}" for kind in ("plain", "group", "consumer-group")]
    for topic in topics:
        make_topic(node.bootstrap, topic, 3)
    until_s = time.monotonic() + seconds
    with (
        Faces("sync") as sync_face,
        Faces("aio") as async_face,
        Load(async_face, node.bootstrap, topics[0], 3) as plain,
        Load(sync_face, node.bootstrap, topics[1], 3, group=f"classic-{number}") as classic,
        Load(
            sync_face, node.bootstrap, topics[2], 3, group=f"modern-{number}", consumer={"group_protocol": "consumer"}
        ) as modern,
    ):
        loads = (plain, classic, modern)
        while time.monotonic() < until_s:
            for load in loads:
                load.await_more(20)
    with node.connect() as client:
        gone = [DeleteTopicState(name=topic) for topic in topics]
        client.request(DeleteTopicsRequest(topics=gone, timeout_ms=60_000), 6)
    return sum(len(load.found) for load in loads)


def test_soak_with_mixed_clients_and_one_attacker() -> None:
    with HostileNode(growth_bytes_max=250_000_000) as node:
        make_topic(node.bootstrap, "bystander")
        make_topic(node.bootstrap, "gzip", configs={"compression.type": "gzip", "compression.gzip.level": 9})
        make_topic(node.bootstrap, "compacted", configs={"cleanup.policy": "compact"})
        make_topic(node.bootstrap, "lying")
        with node.connect() as client:
            for _ in range(10):
                client.send_bytes(attacks.produce("lying", attacks.lying_bomb()))
                client.receive(0, 9)
        with Bystander(node.port, "bystander", node.pid) as alone:
            records = work_for_a_round(node, 0, ROUND_S / 2)
        frames, rounds = attack_frames(), itertools.count(1)
        memory, worst_s = [], 0.0
        for _ in range(2):
            until_s = time.monotonic() + SOAK_S / 2
            with Attacker(node, frames) as attacker, Bystander(node.port, "bystander", node.pid) as beside:
                while time.monotonic() < until_s:
                    records += work_for_a_round(node, next(rounds), min(ROUND_S, SOAK_S / 4))
            node.await_idle()
            memory.append(node.memory_bytes)
            worst_s = max(worst_s, beside.worst_s)
            print(
                f"\n{records} records; {attacker.attacks} attacks; bystander: worst of {beside.count} waits "
                f"{beside.worst_s:.3f} s (without an attack {alone.worst_s:.3f}); {memory[-1] / 1e6:.0f} MB, "
                f"peak {node.memory_bytes_peak / 1e6:.0f} MB"
            )
        assert worst_s - alone.worst_s <= WAIT_S_MAX
        assert node.memory_bytes_peak <= MEMORY_BYTES_MAX
        assert memory[1] - memory[0] <= GROWTH_BYTES_MAX
