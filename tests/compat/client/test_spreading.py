"""Records without a key: Kafka's own producer and Ottla's change their partition after as many bytes, and reach all."""

import statistics
import time
from itertools import groupby
from typing import Any, NamedTuple

import pytest
from tests.support.servers.apache_kafka import ApacheKafka

from ottla import Producer
from ottla.testing import Broker

PARTITIONS = 6
VALUE = bytes(100)
TURN_MIN, TURN_MAX = 97, 301
"""16 KB in batches of one record, and twice 16 KB in one batch: how many records stay on a partition."""


class Case(NamedTuple):
    records: int
    pause_ms: int
    settings: dict[str, int]


CASES = {
    "trickle": Case(2_500, 2, {}),
    "trickle-without-linger": Case(1_500, 2, {"linger.ms": 0}),
    "burst": Case(20_000, 0, {}),
    "burst-without-linger": Case(20_000, 0, {"linger.ms": 0}),
    "burst-into-16-KB": Case(20_000, 0, {"batch.size": 16_384}),
}


def of_ottla(bootstrap: str, topic: str, case: Case) -> list[tuple[int, int]]:
    config: dict[str, Any] = {"bootstrap.servers": bootstrap, **case.settings}
    with Producer(config=config) as producer:
        handles = []
        began = time.monotonic()
        for number in range(case.records):
            handles.append(producer.send(topic, VALUE))
            if case.pause_ms:  # the pace is what is tested
                time.sleep(max(0.0, began + (number + 1) * case.pause_ms / 1000 - time.monotonic()))
        producer.flush()
        found = [handle.result().partition for handle in handles]
    return [(partition, len(list(run))) for partition, run in groupby(found)]


def of_java(output: str) -> dict[str, list[tuple[int, int]]]:
    """Topic → runs of (partition, records)."""
    found: dict[str, list[tuple[int, int]]] = {}
    for line in output.splitlines():
        topic, *runs = line.split()
        found[topic] = [(int(partition), int(records)) for partition, _, records in (run.partition(":") for run in runs)]
    return found


def check(runs: list[tuple[int, int]], case: Case) -> None:
    whole = [records for _, records in runs[:-1]]
    assert min(whole) >= TURN_MIN
    assert statistics.median(whole) <= TURN_MAX  # one is longer where the next partition is the same
    assert sum(records for _, records in runs) == case.records
    least = PARTITIONS if case.pause_ms == 0 else PARTITIONS // 2  # of some 15 turns, three partitions might get none
    assert len({partition for partition, _ in runs}) >= least


@pytest.mark.slow
def test_keyless_records_are_spread_as_by_apache_kafkas_producer(apache_kafka: ApacheKafka) -> None:
    with Broker() as broker:
        lines = []
        for name, case in CASES.items():
            for side in ("java", "ottla"):
                broker.create_topic(f"{side}-{name}", partitions=PARTITIONS)
            settings = " ".join(f"{key}={value}" for key, value in case.settings.items())
            lines.append(f"java-{name} {case.records} {len(VALUE)} {case.pause_ms} {settings}".strip())
        printed = apache_kafka.run_java("KeylessRecords.java", broker.bootstrap_servers, stdin="\n".join(lines) + "\n")
        java = of_java(printed.stdout)
        for name, case in CASES.items():
            check(java[f"java-{name}"], case)
            ours = of_ottla(broker.bootstrap_servers, f"ottla-{name}", case)
            check(ours, case)
