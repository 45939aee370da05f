"""Producers that send as fast as they can, with acks=all to three replicas: no election, and no ISR changes."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.support.peers.leaders import make_replicated, states
from tests.support.peers.load import QUICK
from tests.support.peers.topics import await_true
from tests.support.servers.kafka_server import HANG_S
from tests.support.servers.ottla_cluster import OttlaCluster

import ottla
from ottla import Admin

pytestmark = pytest.mark.slow

TOPIC = "loaded"
ASSIGNMENT = {0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2]}
VALUE = bytes(1000)
AT_ONCE = 500
# Sessions as in Kafka. Ten minutes at full speed are more than a disk holds: old segments go.
SETTINGS = {
    "broker.session.timeout.ms": 9000,
    "broker.heartbeat.interval.ms": 2000,
    "log.retention.check.interval.ms": 5000,
    "log.segment.delete.delay.ms": 1000,
}
KEPT = {"min.insync.replicas": 2, "segment.bytes": 32 << 20, "retention.bytes": 64 << 20}


class FullSpeed:
    """A thread that keeps a producer busy, and counts what it was told is stored. Subclasses have a producer."""

    def __init__(self) -> None:
        self.sent = self.stored = 0
        self.failures: list[str] = []
        self._is_over = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._is_over:
                self._send()
            self._finish()
        except Exception as failure:
            self.failures.append(repr(failure))

    def _send(self) -> None:
        raise NotImplementedError

    def _finish(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        self._is_over = True
        self._thread.join(HANG_S)
        if self._thread.is_alive():
            self.failures.append(f"it was still sending after {HANG_S} s")


class OttlaAtFullSpeed(FullSpeed):
    """Ottla's producer: the next records are sent while the last ones are under way."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = ottla.Producer(bootstrap, acks="all", delivery_timeout_ms=120_000)
        self._under_way: Any = None
        super().__init__()

    def _send(self) -> None:
        deliveries = self._producer.send_many(TOPIC, [VALUE] * AT_ONCE)
        self.sent += AT_ONCE
        self._settle()
        self._under_way = deliveries

    def _settle(self) -> None:
        if self._under_way is not None:
            self._under_way.wait(HANG_S)
            self.stored += AT_ONCE

    def _finish(self) -> None:
        self._settle()
        self._producer.close()


class ConfluentAtFullSpeed(FullSpeed):
    """librdkafka's idempotent producer: its queue is always full."""

    def __init__(self, bootstrap: str) -> None:
        from confluent_kafka import Producer

        settings = {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "linger.ms": 5,
            "message.timeout.ms": 120_000,
            "queue.buffering.max.kbytes": 16_384,
            "log_level": 0,
        }
        self._producer = Producer(settings)
        super().__init__()

    def _send(self) -> None:
        try:
            self._producer.produce(TOPIC, VALUE, on_delivery=self._delivered)
            self.sent += 1
        except BufferError:
            self._producer.poll(0.1)
        self._producer.poll(0)

    def _delivered(self, error: Any, _: Any) -> None:
        if error is None:
            self.stored += 1
        else:
            self.failures.append(str(error))

    def _finish(self) -> None:
        left = self._producer.flush(HANG_S)
        if left:
            self.failures.append(f"{left} records were not delivered")


PRODUCERS: tuple[Callable[[str], FullSpeed], ...] = (OttlaAtFullSpeed, ConfluentAtFullSpeed)


def load(folder: Path, seconds: float) -> None:
    with OttlaCluster(folder, SETTINGS) as cluster, Admin(cluster.bootstrap, **QUICK) as admin, ExitStack() as clients:
        make_replicated(admin, TOPIC, ASSIGNMENT, KEPT)
        producers = [make(cluster.bootstrap) for make in PRODUCERS]
        for each in producers:
            clients.callback(each.stop)
        await_true(lambda: all(each.stored > AT_ONCE or each.failures for each in producers), "producers at work")
        before, said = states(admin, TOPIC), Counter(cluster.changes())
        began_s, began = time.monotonic(), [each.stored for each in producers]
        time.sleep(seconds)  # the point of the test: for so long nothing changes
        changed = list((Counter(cluster.changes()) - said).elements())
        took_s, stored = time.monotonic() - began_s, [each.stored for each in producers]
        rates = [round((after - earlier) / took_s) for after, earlier in zip(stored, began, strict=True)]
        print(f"{took_s:.0f} s; records per second: {rates}; changes: {changed}")
        for each in producers:
            each.stop()
        assert [each.failures[:3] for each in producers] == [[], []]
        assert changed == []
        assert states(admin, TOPIC) == before
        with ottla.Consumer(cluster.bootstrap, **QUICK) as consumer:
            ends = consumer.end_offsets(*((TOPIC, index) for index in ASSIGNMENT))
        assert sum(ends.values()) == sum(each.stored for each in producers) == sum(each.sent for each in producers)


@pytest.mark.timeout(900)
def test_isr_does_not_change_in_a_minute_of_full_load(tmp_path: Path) -> None:
    load(tmp_path, 60)


@pytest.mark.timeout(1800)
def test_isr_does_not_change_in_ten_minutes_of_full_load(tmp_path: Path) -> None:
    load(tmp_path, 600)
