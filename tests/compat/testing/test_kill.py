"""The test fixture's broker, killed again and again under load, in a thread and in a process: no record is lost or doubled."""

import threading
import time
from typing import Any

import pytest
from tests.support.servers.kafka_server import HANG_S

from ottla.testing import Broker

confluent_kafka = pytest.importorskip("confluent_kafka")
KILLS = 3


@pytest.mark.parametrize("process", [False, True], ids=["thread", "process"])
def test_nothing_acknowledged_is_lost_or_doubled(process: bool) -> None:
    with Broker(process=process) as broker:
        broker.create_topic("orders", partitions=2, config={"segment.bytes": 1 << 20})
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "enable.idempotence": True,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 50,
                "log_level": 0,
            }
        )
        acknowledged: list[bytes] = []
        errors: list[Any] = []
        is_over = threading.Event()

        def delivered(error: Any, message: Any) -> None:
            if error is None:
                acknowledged.append(message.value())
            else:
                errors.append(error)

        def load() -> None:
            number = 0
            while not is_over.is_set():
                number += 1
                try:
                    producer.produce("orders", b"%d" % number, partition=number % 2, on_delivery=delivered)
                except BufferError:
                    producer.poll(0.05)
                producer.poll(0 if number % 50 else 0.001)

        thread = threading.Thread(target=load)
        thread.start()
        for kill in range(KILLS):
            wait_until(lambda least=kill * 500: len(acknowledged) > least)
            broker.kill()
            broker.start()
        is_over.set()
        thread.join()
        assert producer.flush(60) == 0
        assert errors == []
        by_partition = [
            [int(record.value or b"") for record in broker.records("orders") if record.partition == index] for index in range(2)
        ]
    assert sorted(map(int, acknowledged)) == sorted(number for numbers in by_partition for number in numbers)
    assert all(numbers == sorted(set(numbers)) for numbers in by_partition)


def wait_until(is_so: Any) -> None:
    deadline_s = time.monotonic() + HANG_S
    while not is_so():
        assert time.monotonic() < deadline_s
        time.sleep(0.005)
