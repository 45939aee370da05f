"""A client that produces ten times a second and measures its waits: alone in its process, so that an attacker does not slow it.

    with Bystander(port, topic) as bystander:
        ... attack ...
    bystander.worst_s

A wait is measured by the clock, less the time in which threads of the node were ready to run but other processes had the cores:
the machine may be busy, and the loop waits for the interpreter lock while the thread that holds it has no core. What the loop
waits for the lock while its holder runs counts, and the processor time that it spends on other requests counts in any case.

`python -m tests.support.hostile.bystander PORT TOPIC PID` is the process. It ends with its standard input, and prints the
waits.
"""

import contextlib
import json
import select
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

from tests.support.logs.batches import make_batch
from tests.support.peers.raw_client import RawClient

from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

PERIOD_S = 0.1


class BystanderFailed(AssertionError):
    """The bystander got no answer, or an error."""


class Bystander:
    """The process. `worst_s` and `count` are there after the block."""

    def __init__(self, port: int, topic: str, pid: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.hostile.bystander", str(port), topic, str(pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "ready\n":
            raise BystanderFailed("the bystander got no first answer")
        self.worst_s = self.worst_clock_s = 0.0
        self.count = 0

    def __enter__(self) -> "Bystander":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            output, _ = self._process.communicate("", timeout=200)  # it waits 180 s for an answer
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise BystanderFailed("the bystander did not end") from None
        if self._process.returncode != 0:
            raise BystanderFailed(f"the bystander ended with {self._process.returncode}: see its traceback")
        waits = json.loads(output)
        self.worst_s, self.worst_clock_s = max(wait for wait, _ in waits), max(wait for _, wait in waits)
        self.count = len(waits)


def queued_s(pid: int | str) -> float:
    """How long the threads of a process have been ready to run without a core."""
    queued_ns = 0
    for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the thread has just ended: a JVM's come and go
            queued_ns += int(path.read_text().split()[1])
    return queued_ns / 1e9


def loop_s(pid: int) -> float:
    """How much processor time the main thread of a process, which runs its event loop, has used."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def main(port: int, topic: str, pid: int) -> None:
    waits: list[tuple[float, float]] = []
    with RawClient(port, timeout_s=180) as client:
        while True:
            part = PartitionProduceData(index=0, records=bytes(make_batch(b"bystander", timestamp=int(time.time() * 1000))))
            request = ProduceRequest(
                acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(name=topic, partition_data=[part])]
            )
            queued_before_s, loop_before_s = queued_s(pid) + queued_s("self"), loop_s(pid)
            begun_s = time.monotonic()
            (answer,) = client.request(request, 9).responses[0].partition_responses
            assert answer.error_code == 0, answer
            wait_s = time.monotonic() - begun_s
            if not waits:
                print("ready", flush=True)
            ready_s = wait_s - (queued_s(pid) + queued_s("self") - queued_before_s)
            waits.append((max(ready_s, loop_s(pid) - loop_before_s), wait_s))
            if select.select([sys.stdin], [], [], max(0.0, PERIOD_S - wait_s))[0]:
                break
    print(json.dumps(waits))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
