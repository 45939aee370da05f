"""Consume, transform, produce under transactions, while broker and workers are killed at random: nothing lost, nothing doubled.

    python -m tests.compat.transactions.exactly_once_load [--server ottla|apache] [--seconds 60] [--seed N]
                                              [--protocol classic|consumer] [--java] [--spare-broker]

A writer numbers its records. Workers of one group (processes of `exactly_once_worker`, with `--java` also one of Kafka's own
clients) copy them, each batch and its offsets in one transaction. At random, a worker is killed; a worker is stopped for longer
than its session, and continues as a zombie; or the broker is killed and started again. In the end readers of committed records
must find every number once, in the order of its partition.

Apache Kafka 4.3.0 fails this test if its only broker is killed: right after a start, its transaction coordinator takes some
aborts for complete although their markers were never written, and readers of committed records hang. `--spare-broker` does not
kill the broker.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.compat.transactions.exactly_once_worker import GROUP, INPUT, OUTPUT, SESSION_MS, STARVED, STARVING_S
from tests.support.peers.topics import make_topic
from tests.support.peers.transactions import await_all_decided, committed_offset, ends, read_partitions
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.java_programs import JavaProcess, JavaPrograms
from tests.support.servers.kafka_server import HANG_S
from tests.support.servers.ottla_server import StartServer, start_ottla
from tests.support.servers.restarting_server import RestartingServer

from ottla import Admin

PARTITIONS = 4
WORKERS = 3
RECORDS_PER_S = 400
PAUSE_S_MAX = 1.5
HARMS = {"worker killed": 5, "worker stopped": 2, "broker killed": 3}
"""The kinds of harm, with their weights."""

SERVER = {
    "group.min.session.timeout.ms": 500,
    "group.consumer.min.session.timeout.ms": 500,
    "group.consumer.session.timeout.ms": SESSION_MS,
    "group.consumer.min.heartbeat.interval.ms": 50,
    "group.consumer.heartbeat.interval.ms": 200,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
}


@dataclass(slots=True)
class Report:
    """What the run did and found; `problems` is empty if nothing is wrong."""

    records: int = 0
    done: Counter[str] = field(default_factory=Counter)
    restarts: int = 0
    starved: list[str] = field(default_factory=list)
    """The output of workers that got no more records. A client may fail so now and then, a broker never."""
    problems: list[str] = field(default_factory=list)


class Writer:
    """Writes numbers in a thread, each to the partition `number % PARTITIONS`."""

    def __init__(self, bootstrap: str) -> None:
        from confluent_kafka import Producer

        self.count = 0
        self.failures: list[str] = []
        self._producer: Any = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "message.timeout.ms": 120_000,
                "reconnect.backoff.max.ms": 200,
                "log_level": 0,
            }
        )
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def _write(self) -> None:
        while not self._over.wait(1 / RECORDS_PER_S):
            value = str(self.count).encode()
            self._producer.produce(INPUT, value, partition=self.count % PARTITIONS, on_delivery=self._delivered)
            self.count += 1
            self._producer.poll(0)
        left = self._producer.flush(120)
        if left:
            self.failures.append(f"{left} records were not written")

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self.failures.append(str(error))

    def stop(self) -> None:
        """Write no more; returns when everything is acknowledged."""
        self._over.set()
        self._thread.join()


class PythonProcess:
    """A process of `exactly_once_worker`; its output is kept in `output`."""

    def __init__(self, command: list[str], output: Path) -> None:
        self._output = output
        with output.open("wb") as kept:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=kept, stderr=kept)
        self.pid = self._process.pid

    @property
    def ended_with(self) -> int | None:
        return self._process.poll()

    def text(self) -> str:
        return self._output.read_text()

    def kill(self) -> None:
        """End it at once (SIGKILL). Does nothing if it has ended."""
        self._process.kill()
        self._process.wait()


class Workers:
    """The worker processes; one that has ended is started again by `keep_alive`."""

    def __init__(self, starts: list[Callable[[], PythonProcess | JavaProcess]]) -> None:
        self._starts = starts
        self._processes = [start() for start in starts]
        self._stopped: dict[int, float] = {}
        """Stopped workers (SIGSTOP), by index, and when to continue them."""
        self.restarts = 0
        self.starved: list[str] = []

    def keep_alive(self, now_s: float) -> None:
        """Start workers that have ended, and continue those that were stopped for long enough."""
        for index, process in enumerate(self._processes):
            ended = process.ended_with
            if ended is not None:
                if ended == STARVED:
                    self.starved.append(process.text())
                self._stopped.pop(index, None)
                self._processes[index] = self._starts[index]()
                self.restarts += 1
            elif index in self._stopped and self._stopped[index] <= now_s:
                del self._stopped[index]
                os.kill(process.pid, signal.SIGCONT)

    def kill(self, index: int) -> None:
        self._processes[index].kill()
        self._stopped.pop(index, None)

    def stop(self, index: int, until_s: float) -> None:
        """Stop a worker (SIGSTOP): the group will evict it."""
        os.kill(self._processes[index].pid, signal.SIGSTOP)
        self._stopped[index] = until_s

    def wake(self) -> None:
        for index in self._stopped:
            os.kill(self._processes[index].pid, signal.SIGCONT)
        self._stopped.clear()

    def end(self) -> None:
        for process in self._processes:
            process.kill()


def run(
    start_server: StartServer,
    seconds: float,
    seed: int = 1,
    protocol: str = "classic",
    kafka: ApacheKafka | None = None,
    broker_too: bool = True,
) -> Report:
    """A whole run. Problems are reported, not raised. With `kafka` one of the workers is a Java program."""
    harms = HARMS if broker_too else {what: weight for what, weight in HARMS.items() if what != "broker killed"}
    report = Report()
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="ottla-eo-") as folder, RestartingServer(start_server, SERVER) as broker:
        for topic in (INPUT, OUTPUT):
            make_topic(broker.bootstrap, topic, PARTITIONS)
        with Admin(broker.bootstrap) as admin:
            admin.alter_consumer_group_offsets(GROUP, {(INPUT, index): 0 for index in range(PARTITIONS)}).raise_first()
        workers = Workers(_starts(broker.bootstrap, protocol, kafka, Path(folder)))
        writer = Writer(broker.bootstrap)
        try:
            _await_output(broker.bootstrap, workers, 1, 30)
            end_s = time.monotonic() + seconds
            while time.monotonic() < end_s:
                _wait(workers, chance.uniform(0.2, PAUSE_S_MAX))
                what = chance.choices(list(harms), list(harms.values()))[0]
                report.done[what] += 1
                _harm(what, chance.randrange(WORKERS), workers, broker)
            workers.wake()
            writer.stop()
            report.records = writer.count
            report.problems += writer.failures
            _check(broker.bootstrap, workers, report)
        finally:
            writer.stop()
            workers.end()
        report.restarts, report.starved = workers.restarts, workers.starved
    return report


def _starts(
    bootstrap: str, protocol: str, kafka: ApacheKafka | None, folder: Path
) -> list[Callable[[], PythonProcess | JavaProcess]]:
    def python(name: str) -> Callable[[], PythonProcess]:
        command = [sys.executable, "-m", "tests.compat.transactions.exactly_once_worker", bootstrap, name, protocol]
        return lambda: PythonProcess(command, folder / f"{name}.txt")

    starts: list[Callable[[], PythonProcess | JavaProcess]] = [python(f"worker-{n}") for n in range(WORKERS)]
    if kafka is not None:
        programs = JavaPrograms(kafka, folder)
        words = [bootstrap, "worker-java", protocol, INPUT, OUTPUT, GROUP, SESSION_MS, STARVING_S, STARVED]
        starts[0] = lambda: programs.start("ExactlyOnceWorker", *words)
    return starts


def _harm(what: str, index: int, workers: Workers, broker: RestartingServer) -> None:
    if what == "worker killed":
        workers.kill(index)
    elif what == "worker stopped":
        workers.stop(index, time.monotonic() + 1.5 * SESSION_MS / 1000)
    else:
        broker.kill()
        broker.start()


def _wait(workers: Workers, seconds: float) -> None:
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        workers.keep_alive(time.monotonic())
        time.sleep(0.02)


def _await_output(bootstrap: str, workers: Workers, records: int, timeout_s: float) -> bool:
    """Whether that many offsets (records and markers) are committed in time."""
    deadline = time.monotonic() + timeout_s
    while sum(ends(bootstrap, OUTPUT, PARTITIONS, committed=True)) < records:
        _wait(workers, 0.1)
        if time.monotonic() > deadline:
            return False
    return True


def _check(bootstrap: str, workers: Workers, report: Report) -> None:
    expected = [[str(n) for n in range(index, report.records, PARTITIONS)] for index in range(PARTITIONS)]
    deadline = time.monotonic() + HANG_S
    while True:
        _wait(workers, 0.5)
        offsets = [committed_offset(bootstrap, GROUP, INPUT, index) or 0 for index in range(PARTITIONS)]
        if offsets == [len(numbers) for numbers in expected]:
            break
        if time.monotonic() > deadline:
            report.problems.append(f"after {HANG_S} s only {offsets} of {report.records} records were taken")
            break
    workers.end()
    try:
        await_all_decided(bootstrap, OUTPUT, PARTITIONS)
    except AssertionError as hanging:
        report.problems.append(
            f"{hanging}: {ends(bootstrap, OUTPUT, PARTITIONS, True)} of {ends(bootstrap, OUTPUT, PARTITIONS, False)}"
        )
    for index, found in enumerate(read_partitions(bootstrap, OUTPUT, PARTITIONS, committed=True)):
        if found != expected[index]:
            counted = Counter(found)
            lost = [number for number in expected[index] if not counted[number]]
            doubled = [number for number, count in counted.items() if count > 1]
            text = f"partition {index}: {len(lost)} lost {lost[:5]}, {len(doubled)} doubled {doubled[:5]}"
            report.problems.append(text if lost or doubled else f"partition {index}: out of order")


def main() -> None:
    options = argparse.ArgumentParser(description="consume, transform, produce exactly once, while everything is killed")
    options.add_argument("--server", choices=("ottla", "apache"), default="ottla")
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--protocol", choices=("classic", "consumer"), default="classic")
    options.add_argument("--java", action="store_true")
    options.add_argument("--spare-broker", action="store_true")
    chosen = options.parse_args()
    kafka = ApacheKafka.obtain() if chosen.java or chosen.server == "apache" else None
    start: StartServer = start_ottla
    if chosen.server == "apache":
        assert kafka is not None
        start = kafka.start_server
    report = run(start, chosen.seconds, chosen.seed, chosen.protocol, kafka if chosen.java else None, not chosen.spare_broker)
    print(report)
    sys.exit(1 if report.problems else 0)


if __name__ == "__main__":
    main()
