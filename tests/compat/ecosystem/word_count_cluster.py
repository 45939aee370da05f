"""Kafka Streams counts words exactly once on three nodes, which are killed and started again in turn.

    python -m tests.compat.ecosystem.word_count_cluster FOLDER [--minutes 10] [--seed N]

The application and the writer of its input are never killed. `word_count.py` says what is counted and how it is checked.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path

from tests.compat.ecosystem.word_count import COUNTS, LINES, PARTITIONS, CountsReader, Lines, Report, problems_of, start
from tests.support.peers.leaders import await_in_sync
from tests.support.peers.load import QUICK
from tests.support.peers.topics import await_true
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.java_programs import JavaPrograms
from tests.support.servers.ottla_cli import hanging_transactions
from tests.support.servers.ottla_cluster import NODES, PATIENT, OttlaCluster

from ottla import Admin
from ottla.client.admin.topics import NewTopic

# 50 words a second: the application keeps pace on a busy machine, and a wrong count shows at any rate.
LINES_PER_S = 10
PROGRESS_RECORDS = 100
KILL_EVERY_S = 25
WAIT_S = 900
SETTINGS = PATIENT | {
    "offsets.topic.num.partitions": 3,
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.num.partitions": 3,
    "transaction.state.log.replication.factor": 3,
    "transaction.state.log.min.isr": 2,
    "default.replication.factor": 3,
    "min.insync.replicas": 2,
    "group.initial.rebalance.delay.ms": 0,
}
APPLICATION: dict[str, object] = {
    "replication_factor": 3,
    "consumer_session_timeout_ms": 10_000,
    "producer_transaction_timeout_ms": 60_000,  # a killed broker is fenced after 9 s; the default of 10 s would fence producers
    "task_timeout_ms": WAIT_S * 1000,
}
INTERNAL = ("__consumer_offsets", "__transaction_state")


def run(folder: Path, kafka: ApacheKafka, minutes: float, seed: int = 1) -> Report:
    """Kill a node about every `KILL_EVERY_S` until the time is over. Problems are reported, not raised."""
    report = Report()
    chance = random.Random(seed)
    with OttlaCluster(folder, SETTINGS) as cluster, Admin(cluster.bootstrap, **QUICK) as admin:
        bootstrap = cluster.bootstrap
        admin.create_topics([NewTopic(topic, PARTITIONS, len(NODES)) for topic in (LINES, COUNTS)]).raise_first()
        programs = JavaPrograms(kafka, folder / "classes")
        lines = Lines(bootstrap, seed, LINES_PER_S)
        application = start(programs, bootstrap, folder, **APPLICATION)
        reader = CountsReader(bootstrap)

        def await_progress() -> None:
            """Read counts until there are `PROGRESS_RECORDS` more that are committed."""
            goal = reader.seen + PROGRESS_RECORDS

            def is_made() -> bool:
                application.check_alive()
                return reader.read_on() >= goal

            await_true(is_made, f"{PROGRESS_RECORDS} more counts", WAIT_S)

        try:
            await_progress()
            began_s = time.monotonic()
            while time.monotonic() - began_s < minutes * 60:
                next_s = time.monotonic() + KILL_EVERY_S
                victim = chance.choice(NODES)
                cluster.kill(victim)
                report.broker_kills += 1
                await_progress()
                cluster.start(victim)
                await_progress()
                for topic in (LINES, COUNTS, *INTERNAL):
                    await_in_sync(admin, topic, WAIT_S)
                print(f"kill {report.broker_kills}, node {victim}: {reader.seen} counts", flush=True)
                while time.monotonic() < next_s:
                    reader.read_on()
            lines.stop()
            report.words = lines.written.total()
            report.problems += problems_of(reader, lines, WAIT_S)
        except AssertionError as failure:
            failure.add_note(f"The application's output ends with:\n{application.tail()}")
            raise
        finally:
            lines.stop()
            application.kill()
            reader.close()
        report.replaced_threads = application.text().count("failed ")
        # The application was killed: its transactions end with their timeout.
        await_true(lambda: not hanging_transactions(bootstrap), "no hanging transaction")
    return report


def main() -> None:
    options = argparse.ArgumentParser(description="kill nodes under Kafka Streams, and look at its counts")
    options.add_argument("folder", type=Path)
    options.add_argument("--minutes", type=float, default=10)
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()
    report = run(chosen.folder, ApacheKafka.obtain(["streams"]), chosen.minutes, chosen.seed)
    print(report)
    sys.exit(1 if report.problems else 0)


if __name__ == "__main__":
    main()
