"""Kafka Streams counts words exactly once while it and its broker are killed; each word's counts must be 1, 2, 3 … n.

    python -m tests.compat.ecosystem.word_count [--server ottla|apache] [--kills 3] [--seed N] [--spare-broker]

An idempotent producer, which is never killed, writes lines of a few words. Each round kills the application, then the broker,
each after it has made progress. Streams' cache is off, so that each step of each count must be there once, in order, for
readers of committed records.
"""

from __future__ import annotations

import argparse
import random
import struct
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.peers.topics import await_true, make_topic
from tests.support.peers.transactions import ends
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.java_programs import JavaProcess, JavaPrograms
from tests.support.servers.kafka_server import HANG_S
from tests.support.servers.ottla_server import StartServer, start_ottla
from tests.support.servers.restarting_server import RestartingServer

LINES, COUNTS = "lines", "counts"
PARTITIONS = 2
WORDS = [f"word-{number}" for number in range(40)]
WORDS_PER_LINE = 5
LINES_PER_S = 200
PROGRESS_RECORDS = 200
SERVER = {"group.min.session.timeout.ms": 500, "group.initial.rebalance.delay.ms": 0}


@dataclass(slots=True)
class Report:
    """What the run did and found; `problems` is empty if nothing is wrong."""

    application_kills: int = 0
    broker_kills: int = 0
    words: int = 0
    replaced_threads: int = 0
    """Threads of the application that failed and were replaced."""
    problems: list[str] = field(default_factory=list)


class Lines:
    """Writes lines in a thread until `stop`; counts how often each word was written."""

    def __init__(self, bootstrap: str, seed: int, lines_per_s: float = LINES_PER_S) -> None:
        from confluent_kafka import Producer

        self.written: Counter[str] = Counter()
        self._pause_s = 1 / lines_per_s
        self._random = random.Random(seed)
        self._producer: Any = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "message.timeout.ms": 120_000,
                "reconnect.backoff.max.ms": 200,
                "linger.ms": 5,
                "log_level": 0,
            }
        )
        self.failures: list[str] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def _write(self) -> None:
        while not self._over.is_set():
            words = self._random.choices(WORDS, k=WORDS_PER_LINE)
            self._producer.produce(LINES, " ".join(words).encode(), on_delivery=self._delivered)
            self.written.update(words)
            self._producer.poll(0)
            time.sleep(self._pause_s)  # the rate of the words
        left = self._producer.flush(120)
        if left:
            self.failures.append(f"{left} lines were not written")

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self.failures.append(str(error))

    def stop(self) -> None:
        """Write no more; returns when everything is acknowledged."""
        self._over.set()
        self._thread.join()


def run(start_server: StartServer, kafka: ApacheKafka, kills: int, seed: int = 1, broker_too: bool = True) -> Report:
    """A whole run. Problems are reported, not raised. `exactly_once_load` says when to spare the broker."""
    report = Report()
    with (
        tempfile.TemporaryDirectory(prefix="ottla-words-") as folder,
        RestartingServer(start_server, SERVER) as broker,
    ):
        for topic in (LINES, COUNTS):
            make_topic(broker.bootstrap, topic, PARTITIONS)
        programs = JavaPrograms(kafka, Path(folder) / "classes")
        lines = Lines(broker.bootstrap, seed)
        application = start(programs, broker.bootstrap, Path(folder))
        try:
            for _ in range(kills):
                _await_progress(broker.bootstrap, application)
                application.kill()
                report.application_kills += 1
                application = start(programs, broker.bootstrap, Path(folder))
                if broker_too:
                    _await_progress(broker.bootstrap, application)
                    broker.kill()
                    report.broker_kills += 1
                    broker.start()
            _await_progress(broker.bootstrap, application)
            lines.stop()
            report.words = lines.written.total()
            _check(broker.bootstrap, lines, report)
        except AssertionError as failure:
            failure.add_note(f"The application's output ends with:\n{application.tail()}")
            raise
        finally:
            lines.stop()
            application.kill()
    return report


def start(programs: JavaPrograms, bootstrap: str, folder: Path, **more: object) -> JavaProcess:
    """Start the application. `more` are settings of Kafka Streams, with underscores."""
    own = {"replication.factor": 1, "consumer.session.timeout.ms": 2000, "consumer.heartbeat.interval.ms": 200}
    own |= {name.replace("_", "."): value for name, value in more.items()}
    return programs.start(
        "WordCount",
        folder / "state",
        "application.id=words",
        f"bootstrap.servers={bootstrap}",
        "processing.guarantee=exactly_once_v2",
        "commit.interval.ms=100",
        "num.stream.threads=2",
        "statestore.cache.max.bytes=0",
        "reconnect.backoff.max.ms=200",
        "consumer.auto.offset.reset=earliest",
        *(f"{name}={value}" for name, value in own.items()),
    )


def _await_progress(bootstrap: str, application: JavaProcess) -> None:
    """Return when `PROGRESS_RECORDS` more counts are committed."""
    goal = sum(ends(bootstrap, COUNTS, PARTITIONS, committed=True)) + PROGRESS_RECORDS
    deadline = time.monotonic() + HANG_S
    while sum(ends(bootstrap, COUNTS, PARTITIONS, committed=True)) < goal:
        application.check_alive()
        assert time.monotonic() < deadline, f"the application made no progress in {HANG_S} s"
        time.sleep(0.05)


def _check(bootstrap: str, lines: Lines, report: Report) -> None:
    """Read counts until all words are counted; then every step of every count must be there once."""
    reader = CountsReader(bootstrap)
    report.problems += problems_of(reader, lines, HANG_S)
    reader.close()


def problems_of(reader: CountsReader, lines: Lines, timeout_s: float) -> list[str]:
    """What is wrong with the counts when all words are counted, or the time is over."""
    problems = list(lines.failures)
    try:
        await_true(lambda: reader.read_on() >= lines.written.total(), f"{lines.written.total()} counts", timeout_s)
    except AssertionError as late:
        problems.append(f"{late}; there are {reader.seen}")
    for word, expected in sorted(lines.written.items()):
        if reader.counts.get(word) != list(range(1, expected + 1)):
            found = reader.counts.get(word, [])
            problems.append(f"{word}: {len(found)} counts, up to {max(found, default=0)}, where {expected} are right")
    return problems


class CountsReader:
    """Reads the committed counts, word by word."""

    def __init__(self, bootstrap: str) -> None:
        from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

        self.counts: dict[str, list[int]] = {}
        self.seen = 0
        self._consumer: Any = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "unused",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "log_level": 0,
            }
        )
        self._consumer.assign([TopicPartition(COUNTS, index, OFFSET_BEGINNING) for index in range(PARTITIONS)])

    def read_on(self) -> int:
        """How many counts have been read by now."""
        for message in self._consumer.consume(1000, 0.2):
            if message.error() is None:
                self.seen += 1
                self.counts.setdefault(message.key().decode(), []).append(struct.unpack(">q", message.value())[0])
        return self.seen

    def close(self) -> None:
        self._consumer.close()


def main() -> None:
    options = argparse.ArgumentParser(description="kill Kafka Streams and its broker, and look at its counts")
    options.add_argument("--server", choices=("ottla", "apache"), default="ottla")
    options.add_argument("--kills", type=int, default=3)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--spare-broker", action="store_true")
    chosen = options.parse_args()
    kafka = ApacheKafka.obtain(["streams"])
    start: StartServer = start_ottla if chosen.server == "ottla" else kafka.start_server
    report = run(start, kafka, chosen.kills, chosen.seed, not chosen.spare_broker)
    print(report)
    sys.exit(1 if report.problems else 0)


if __name__ == "__main__":
    main()
