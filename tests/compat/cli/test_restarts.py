"""`ottla produce` and `ottla consume` while their broker is killed and started again: every record once, in order."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.peers.topics import await_true
from tests.support.servers.kafka_server import HANG_S, free_ports
from tests.support.servers.ottla_server import OTTLA

KILLS = 3
LINES_PER_WRITE = 200
SECONDS_BETWEEN_KILLS = 0.5


class Node:
    """`ottla up`, which can be killed and started again on the same port and directory."""

    def __init__(self, folder: Path) -> None:
        (self.port,) = free_ports(1)
        self._command = [*OTTLA, "up", "--port", str(self.port), "--data", str(folder / "data"), "--json"]
        self._log = folder / "log"
        self.start()

    def start(self) -> None:
        with open(self._log, "ab") as log:
            self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=log)
        assert self._process.stdout is not None
        assert json.loads(self._process.stdout.readline())["bootstrap_servers"]

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    running = Node(tmp_path)
    yield running
    running.kill()


def test_every_record_comes_once_and_in_order(node: Node, tmp_path: Path) -> None:
    environment = os.environ | {"OTTLA_BOOTSTRAP_SERVERS": f"127.0.0.1:{node.port}"}

    def ottla(*arguments: str, **pipes: object) -> "subprocess.Popen[bytes]":
        return subprocess.Popen([*OTTLA, *arguments], env=environment, stderr=subprocess.PIPE, **pipes)  # type: ignore[call-overload,no-any-return]

    assert ottla("topics", "create", "orders", "--partitions", "2").wait(HANG_S) == 0
    shown = tmp_path / "shown"
    with open(shown, "wb") as output:
        consumer = ottla("consume", "orders", "--from-beginning", stdout=output)
    producer = ottla("produce", "orders", "--summary", "--batch-size", "2000", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert producer.stdin is not None
    producer.stdin.write(b"0\n")
    producer.stdin.flush()
    written = 1
    await_true(lambda: shown.stat().st_size > 0, "the first record to be shown")  # a command retries only once it has connected
    for _ in range(KILLS):
        until = time.monotonic() + SECONDS_BETWEEN_KILLS
        while time.monotonic() < until:
            producer.stdin.write(b"".join(b"%d\n" % number for number in range(written, written + LINES_PER_WRITE)))
            producer.stdin.flush()
            written += LINES_PER_WRITE
            time.sleep(0.005)
        node.kill()
        node.start()
    said, complaints = producer.communicate(timeout=HANG_S)
    assert producer.returncode == 0
    assert b"Trying again until it works" in complaints
    assert complaints.endswith(b"records stored in orders.\n")
    assert json.loads(said)["records"] == written

    expected = list(range(written))
    await_true(lambda: shown.read_bytes().count(b"\n") >= written, f"{written} records to be shown")
    consumer.send_signal(signal.SIGINT)
    _, messages = consumer.communicate(timeout=HANG_S)
    assert consumer.returncode == 130
    assert f"Processed a total of {written} messages".encode() in messages
    assert b"Trying again" in messages
    assert sorted(map(int, shown.read_bytes().split())) == expected
    for partition in ("0", "1"):
        again = ottla("consume", "orders", "--partition", partition, "--from-beginning", "--until-end", stdout=subprocess.PIPE)
        numbers = [int(line) for line in again.communicate(timeout=HANG_S)[0].split()]
        assert numbers == sorted(numbers)
