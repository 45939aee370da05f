"""`make bench-cluster`: a cluster of three nodes of Apache Kafka and of Ottla, in turn: start, failover, memory.

python -m bench.cluster                  three rounds, about 6 minutes; keeps the figures in bench/cluster/results.json
python -m bench.cluster --quick          one round; prints only (also with QUICK=1)
python -m bench.cluster --rounds 5 --failovers 5
python -m bench.cluster --rounds 1 --partitions 10000 --two-nodes      the rows of controller.py too
--save / --no-save                       keep the figures of a quick run, or do not keep those of a full one
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from bench.cluster import controller
from bench.cluster.measures import controller_failover, idle_memory_mb, start_to_first_record, wait_for_all
from bench.cluster.nodes import ThreeNodes
from bench.side_by_side.figures import APACHE, OTTLA, Figure, Results, at_most
from bench.side_by_side.machine import machine_facts
from bench.side_by_side.progress import Progress
from bench.side_by_side.table import terminal_text
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.keeping import keep

NO_ROWS: Mapping[str, controller.Row] = MappingProxyType({})
RESULTS = Path(__file__).parent / "results.json"
ROUNDS, FAILOVERS = 3, 3
START, FAILOVER, MEMORY = "start", "failover", "memory"
ROWS = {
    START: ("three nodes: start to the first produced record", "ms", at_most(0.2)),
    FAILOVER: ("three nodes: kill -9 of the controller to the next one's first topic", "ms", at_most(1.0)),
    MEMORY: ("three nodes: memory, idle", "MB", at_most(0.2)),
}


def read_options(arguments: list[str]) -> argparse.Namespace:
    """The options; a full run is kept unless `--no-save` is given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", default=os.environ.get("QUICK", "") not in ("", "0"))
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--failovers", type=int, help="in each round")
    parser.add_argument("--partitions", type=int, default=0, help="measure three nodes with so many partitions, too")
    parser.add_argument("--two-nodes", action="store_true", help="measure one Apache node beside two of Ottla, too")
    parser.add_argument("--save", action=argparse.BooleanOptionalAction)
    options = parser.parse_args(arguments)
    if options.save is None:
        options.save = not options.quick
    options.rounds = options.rounds or (1 if options.quick else ROUNDS)
    options.failovers = options.failovers or (1 if options.quick else FAILOVERS)
    return options


def measure(label: str, kafka: ApacheKafka, failovers: int, progress: Progress) -> dict[str, list[float]]:
    """The samples of one new cluster."""
    folder = Path(tempfile.mkdtemp(prefix="ottla-bench-"))
    with ThreeNodes(label, kafka, folder) as nodes:
        taken = {START: [start_to_first_record(nodes) * 1000], FAILOVER: [], MEMORY: []}
        wait_for_all(nodes)
        taken[MEMORY].append(idle_memory_mb(nodes))
        progress.say(f"{label}: first record after {taken[START][0]:,.0f} ms, {taken[MEMORY][0]:,.0f} MB idle")
        for number in range(failovers):
            taken[FAILOVER].append(controller_failover(nodes, number) * 1000)
            progress.say(f"{label}: a new controller after {taken[FAILOVER][-1]:,.0f} ms")
    return taken


def figures(samples: dict[str, dict[str, list[float]]], more_rows: Mapping[str, controller.Row] = NO_ROWS) -> list[Figure]:
    """The rows of the table, from the samples by side and row."""
    return [
        Figure(f"cluster:{key}", what, unit, samples[APACHE][key], samples[OTTLA][key], goal)
        for key, (what, unit, goal) in {**ROWS, **more_rows}.items()
    ]


def main(arguments: list[str]) -> int:
    options = read_options(arguments)
    keep()
    kafka, progress = ApacheKafka.obtain(), Progress()
    more_rows = controller.rows_of(options.partitions, options.two_nodes)
    samples: dict[str, dict[str, list[float]]] = {side: {key: [] for key in (*ROWS, *more_rows)} for side in (APACHE, OTTLA)}
    for _ in range(options.rounds):
        for side, taken in samples.items():
            for key, values in measure(side, kafka, options.failovers, progress).items():
                taken[key] += values
            if options.partitions:
                many = controller.many_partitions(side, kafka, options.partitions, options.failovers, progress)
                for key, values in many.items():
                    taken[key] += values
    if options.two_nodes:
        for side, rates in controller.two_nodes(kafka, options.rounds, progress).items():
            samples[side][controller.TWO_NODES] += rates
    results = Results(machine_facts())
    results.add(figures(samples, more_rows))
    print(terminal_text(results))
    if options.save:
        RESULTS.write_text(json.dumps(results.to_json(), indent=1) + "\n")
        progress.say(f"written to {RESULTS.relative_to(Path.cwd()) if RESULTS.is_relative_to(Path.cwd()) else RESULTS}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
