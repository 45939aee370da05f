"""Containers of the image, without an engine (`tools/image`), with their output and a client in their network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.servers.kafka_server import HANG_S
from tests.support.servers.keeping import MARKS
from tools.image.run import Container

READY = "Kafka Server started"

CLIENT = """
import sys
from confluent_kafka import Consumer, Producer
servers = sys.argv[1]
sent = [b"one coffee", b"two teas"]
producer = Producer({"bootstrap.servers": servers, "acks": "all"})
for value in sent:
    producer.produce("orders", value)
assert producer.flush(60) == 0, "not all records were acknowledged"
consumer = Consumer({"bootstrap.servers": servers, "group.id": "readers", "auto.offset.reset": "earliest"})
consumer.subscribe(["orders"])
got = []
while len(got) < len(sent):
    record = consumer.poll(60)
    assert record is not None, f"nothing came after {got}"
    assert record.error() is None, record.error()
    got.append(record.value())
consumer.close()
assert sorted(got) == sorted(sent), got  # a topic may have several partitions
print("ok")
"""


class Running:
    """A container, with its output so far."""

    def __init__(self, container: Container, output: Path) -> None:
        self.container = container
        self._output = output

    @property
    def printed(self) -> str:
        return self._output.read_text(errors="replace")

    def await_line(self, expression: str) -> str:
        """Wait for a line that the expression matches; returns all lines."""
        deadline_s = time.monotonic() + HANG_S
        while re.search(expression, self.printed) is None:
            assert self.container.process.poll() is None, f"the container has ended:\n{self.printed}"
            assert time.monotonic() < deadline_s, f"no line matched {expression}:\n{self.printed}"
            time.sleep(0.01)
        return self.printed

    def await_end(self) -> tuple[int, str]:
        return self.container.process.wait(HANG_S), self.printed

    def send_and_read(self, servers: str = "localhost:9092") -> None:
        """Two records through librdkafka, from the container's network."""
        command = [*self.container.inside(), sys.executable, "-c", CLIENT, servers]
        done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
        assert (done.returncode, done.stdout) == (0, "ok\n"), f"{done.stderr}\n{self.printed}"


@contextmanager
def running(image: Path, folder: Path, command: Sequence[str] | None = None, **options: Any) -> Iterator[Running]:
    output = folder / f"output-{time.monotonic_ns()}"
    options["environment"] = {**options.get("environment", {}), MARKS: os.environ[MARKS]}  # ended if this process is killed
    with output.open("w") as written, Container(image, command, output=written, **options) as container:
        yield Running(container, output)
