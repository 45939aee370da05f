"""Three nodes replicate a topic, and its leaders are killed under load: nothing is lost, doubled or out of order."""

import threading
from collections import defaultdict
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest
from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka import KafkaError as ConfluentError
from confluent_kafka import Message
from confluent_kafka import Producer as ConfluentProducer
from tests.support.peers.leaders import await_in_sync, leaders, make_replicated
from tests.support.peers.load import QUICK, Load
from tests.support.peers.ottla_clients import Faces
from tests.support.peers.topics import await_true
from tests.support.servers.kafka_server import HANG_S
from tests.support.servers.ottla_cluster import NODES, OttlaCluster

from ottla import Admin

ASSIGNMENT = {0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2]}


class ConfluentLoad:
    """An idempotent producer of confluent-kafka and a consumer, which run until the block is left; then all is checked."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._topic = topic
        self._producer = ConfluentProducer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 2,
                "message.timeout.ms": 150_000,
                "reconnect.backoff.max.ms": 500,
            }
        )
        self._consumer = ConfluentConsumer(
            {"bootstrap.servers": bootstrap, "group.id": "unused", "auto.offset.reset": "earliest", "enable.auto.commit": False}
        )
        self.stored: dict[int, tuple[int, int]] = {}
        self.refused: list[str] = []
        self.read: dict[tuple[int, int], int] = {}
        """(partition, offset) → number."""
        self._sent = 0
        self._is_sending = self._is_reading = True
        self._threads = [threading.Thread(target=self._send), threading.Thread(target=self._read)]

    def _send(self) -> None:
        pace = threading.Event()
        while self._is_sending:
            number = self._sent
            self._producer.produce(self._topic, b"%d" % number, partition=number % len(ASSIGNMENT), on_delivery=self._delivered)
            self._sent += 1
            self._producer.poll(0)
            pace.wait(0.002)
        self._producer.flush(HANG_S)

    def _delivered(self, error: ConfluentError | None, message: Message) -> None:
        if error is not None:
            self.refused.append(str(error))
        else:
            self.stored[int(message.value() or b"")] = (message.partition() or 0, message.offset() or 0)

    def _read(self) -> None:
        from confluent_kafka import TopicPartition

        self._consumer.assign([TopicPartition(self._topic, index, 0) for index in ASSIGNMENT])
        while self._is_reading:
            message = self._consumer.poll(0.2)
            if message is not None and message.error() is None:
                place = (message.partition() or 0, message.offset() or 0)
                value = int(message.value() or b"")
                if self.read.setdefault(place, value) != value:
                    self.refused.append(f"{place} was {self.read[place]} and is {value}")
        self._consumer.close()

    def await_more(self, count: int) -> None:
        goal = len(self.stored) + count
        await_true(lambda: bool(self.refused) or len(self.stored) >= goal, f"{count} more records to be stored")
        assert not self.refused

    def __enter__(self) -> "ConfluentLoad":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._is_sending = False
        self._threads[0].join(HANG_S)
        try:
            if error is None:
                assert self.refused == []
                assert len(self.stored) == self._sent
                await_true(lambda: len(self.read) >= self._sent or bool(self.refused), "all records to be read")
        finally:
            self._is_reading = False
            self._threads[1].join(HANG_S)
        if error is None:
            assert self.refused == []
            assert self.read == {place: number for number, place in self.stored.items()}, "each record once, in its place"
            orders: dict[int, list[int]] = defaultdict(list)
            for (partition, _), number in sorted(self.read.items()):
                orders[partition].append(number)
            assert all(order == sorted(order) for order in orders.values())


def log_bytes(folder: Path, topic: str, partition: int) -> bytes:
    """The batches of a partition in a node's folder."""
    return b"".join(each.read_bytes() for each in sorted((folder / f"{topic}-{partition}").glob("*.log")))


def kill_leaders(folder: Path, rounds: int, settings: dict[str, object] | None = None) -> None:
    with OttlaCluster(folder, settings) as cluster, Admin(cluster.bootstrap, **QUICK) as admin:
        for topic in ("ours", "confluents"):
            make_replicated(admin, topic, ASSIGNMENT, {"min.insync.replicas": 2})
        bootstrap = cluster.bootstrap
        with (
            Faces("sync") as face,
            Load(face, bootstrap, "ours", len(ASSIGNMENT), producer={"acks": "all"}) as ours,
            ConfluentLoad(bootstrap, "confluents") as theirs,
        ):
            loads: list[Any] = [ours, theirs]
            for number in range(rounds):
                for load in loads:
                    load.await_more(50)
                leader = leaders(admin, "ours" if number % 2 else "confluents")[number % len(ASSIGNMENT)]
                assert leader is not None
                cluster.kill(leader)
                for load in loads:
                    load.await_more(50)
                cluster.start(leader)
                for topic in ("ours", "confluents"):
                    await_in_sync(admin, topic)
        for node in NODES:
            cluster.kill(node)
        cluster.start(*NODES)
        for topic in ("ours", "confluents"):
            await_in_sync(admin, topic)
            for partition in ASSIGNMENT:
                held = [log_bytes(folder / f"node-{node}", topic, partition) for node in NODES]
                assert held[0] == held[1] == held[2], f"the replicas of {topic}-{partition} differ"


def test_killed_leaders_lose_nothing(tmp_path: Path) -> None:
    kill_leaders(tmp_path, 5)


@pytest.mark.slow
def test_fifty_killed_leaders_lose_nothing(tmp_path: Path) -> None:
    kill_leaders(tmp_path, 50)
