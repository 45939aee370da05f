"""`make bench-cluster`: a cluster of three nodes of Apache Kafka and of Ottla, in turn.

python -m bench.cluster                      three rounds, about 25 minutes; keeps the figures
python -m bench.cluster --quick              one round with little data; prints only (also with QUICK=1)
python -m bench.cluster --rows produce,leader --rounds 5 --failovers 5
python -m bench.cluster --rows many,two-nodes --partitions 10000 --replicas 1,3 --rounds 1
--save / --no-save                           keep the figures of a quick run, or do not keep those of a full one

Rows: start, memory, produce (one and three replicas, with CPU), latency, leader, failover (of the controller), partitions.
Only when named, for they are long: many (creation, idle CPU, memory, failovers and start with many partitions), two-nodes.
A run that fails or is interrupted shows and keeps the rows that both sides have ended.
"""

from __future__ import annotations

import argparse
import compileall
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.cluster import many, replicas, report, two_nodes
from bench.cluster.measures import controller_failover, idle_memory_mb, start_to_first_record, wait_for_all
from bench.cluster.nodes import ThreeNodes
from bench.cluster.rows import GROUPS, LOADS, REPLICAS, SELDOM, figures, table
from bench.side_by_side.errors import BenchFailed
from bench.side_by_side.figures import APACHE, OTTLA, Results
from bench.side_by_side.machine import machine_facts
from bench.side_by_side.progress import Progress
from bench.side_by_side.table import terminal_text
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.keeping import keep

from ottla.errors import KafkaError

ROUNDS, FAILOVERS = 3, 3
IDLE_PARTITIONS = 1000


def read_options(arguments: list[str]) -> argparse.Namespace:
    """The options; a full run is kept unless `--no-save` is given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", default=os.environ.get("QUICK", "") not in ("", "0"))
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--failovers", type=int, help="of each kind, in each round")
    parser.add_argument("--partitions", type=int, default=IDLE_PARTITIONS, help="of the rows partitions and many")
    parser.add_argument("--replicas", type=_replicas, default=(1,), help="of the row many: 1, 3 or 1,3")
    parser.add_argument("--rows", type=_rows, default=GROUPS, help=f"some of {','.join(GROUPS + SELDOM)}")
    parser.add_argument("--save", action=argparse.BooleanOptionalAction)
    options = parser.parse_args(arguments)
    if options.save is None:
        options.save = not options.quick
    options.rounds = options.rounds or (1 if options.quick else ROUNDS)
    options.failovers = options.failovers or (1 if options.quick else FAILOVERS)
    return options


def _rows(text: str) -> tuple[str, ...]:
    chosen = tuple(text.split(","))
    for name in chosen:
        if name not in GROUPS + SELDOM:
            raise argparse.ArgumentTypeError(f"there is no row {name!r}; rows are {', '.join(GROUPS + SELDOM)}")
    return chosen


def _replicas(text: str) -> tuple[int, ...]:
    if text not in ("1", "3", "1,3"):
        raise argparse.ArgumentTypeError(f"{text!r} is not 1, 3 or 1,3")
    return tuple(map(int, text.split(",")))


class Round:
    """Adds the samples of one new cluster to `samples`."""

    def __init__(
        self,
        label: str,
        kafka: ApacheKafka,
        options: argparse.Namespace,
        progress: Progress,
        samples: dict[str, list[float]],
    ) -> None:
        self.samples = samples
        self._label, self._kafka, self._options, self._progress = label, kafka, options, progress

    def measure(self) -> None:
        """All chosen rows."""
        options = self._options
        folder = Path(tempfile.mkdtemp(prefix="ottla-bench-"))
        with ThreeNodes(self._label, self._kafka, folder) as nodes:
            start_ms = start_to_first_record(nodes) * 1000
            wait_for_all(nodes)
            if "start" in options.rows:
                self._take("start", start_ms)
            if "memory" in options.rows:
                self._take("memory", idle_memory_mb(nodes))
            if "produce" in options.rows:
                self._produce(nodes)
            if "latency" in options.rows:
                requests = replicas.LATENCY_REQUESTS_QUICK if options.quick else replicas.LATENCY_REQUESTS
                p50_ms, p99_ms = replicas.latencies(nodes, requests)
                self._take("latency:p50", p50_ms)
                self._take("latency:p99", p99_ms)
            for number in range(options.failovers):
                if "leader" in options.rows:
                    self._take("leader", replicas.leader_failover(nodes, number) * 1000)
                if "failover" in options.rows:
                    self._take("failover", controller_failover(nodes, number) * 1000)
            if "partitions" in options.rows:  # the last: it leaves a node dead
                idle_s = replicas.IDLE_QUICK_S if options.quick else replicas.IDLE_S
                cpu_percent, memory_mb, leaders_ms = replicas.idle_partitions(nodes, options.partitions, idle_s)
                self._take("partitions:cpu", cpu_percent)
                self._take("partitions:memory", memory_mb)
                self._take("partitions:leaders", leaders_ms)

    def _produce(self, nodes: ThreeNodes) -> None:
        warm_up = replicas.WARM_UP
        for count in REPLICAS:
            replicas.produce(
                nodes, self._kafka, warm_up, count, warm_up.quick_records if self._options.quick else warm_up.records
            )
        for load in LOADS:
            for count in REPLICAS:
                records = load.quick_records if self._options.quick else load.records
                mb_per_s, cpu_s_per_gb = replicas.produce(nodes, self._kafka, load, count, records)
                if load is replicas.WARM_UP:
                    continue
                self._take(f"produce:{load.part}-r{count}", mb_per_s)
                self._take(f"produce:{load.part}-r{count}-cpu", cpu_s_per_gb)

    def _take(self, key: str, value: float) -> None:
        self.samples[key].append(value)
        self._progress.say(f"{self._label}, {key}: {value:,.2f}")


Samples = dict[str, dict[str, list[float]]]
"""Side → row → samples."""


def measure(options: argparse.Namespace, kafka: ApacheKafka, progress: Progress, samples: Samples) -> bool:
    """All chosen rows, on one side after the other; `samples` gets what is measured. False if something failed."""
    parts: list[Callable[[], None]] = []
    for _ in range(options.rounds):
        if set(options.rows) & set(GROUPS):
            parts.append(partial(_groups, options, kafka, progress, samples))
        if "many" in options.rows:
            parts += [partial(_many, options, kafka, progress, samples, count) for count in options.replicas]
    if two_nodes.KEY in options.rows:
        parts.append(partial(two_nodes.two_nodes, kafka, options.rounds, progress, samples))
    is_whole = True
    for part in parts:
        try:
            part()
        except (BenchFailed, TimeoutError, KafkaError) as failure:  # the next part begins with new clusters
            progress.say(f"failed: {failure}")
            is_whole = False
    return is_whole


def _groups(options: argparse.Namespace, kafka: ApacheKafka, progress: Progress, samples: Samples) -> None:
    for side, taken in samples.items():
        Round(side, kafka, options, progress, taken).measure()


def _many(options: argparse.Namespace, kafka: ApacheKafka, progress: Progress, samples: Samples, replicas: int) -> None:
    for side, taken in samples.items():
        many.many_partitions(side, kafka, options.partitions, replicas, options.failovers, progress, taken)


def main(arguments: list[str]) -> int:
    options = read_options(arguments)
    # Users have cached bytecode. A start that compiles all modules would not be what they see.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    compileall.compile_dir(report.SOURCES, quiet=2)
    keep()
    kafka, progress, is_whole = ApacheKafka.obtain(), Progress(), False
    samples: Samples = {side: defaultdict(list) for side in (APACHE, OTTLA)}
    try:
        is_whole = measure(options, kafka, progress, samples)
    except KeyboardInterrupt:
        progress.say("interrupted: results so far")
    results = Results(machine_facts())
    rows = table(options.partitions) | many.table(options.partitions) | two_nodes.ROWS
    results.add(figures(rows, samples[APACHE], samples[OTTLA]))
    print(terminal_text(results))
    if options.save and results.figures:
        report.keep(results)
        progress.say("written to bench/cluster/results.json and docs/benchmarks.md")
    return 0 if is_whole else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
