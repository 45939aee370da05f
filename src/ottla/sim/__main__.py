"""Runs seeds: `python -m ottla.sim [--nodes K] --seed N [--count M] [--jobs J]`. Prints outcomes, and events with `--trace`."""

from __future__ import annotations

import argparse
import gc
import logging
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from time import process_time
from typing import NamedTuple

from ottla.sim.cluster.run import run_cluster_seed
from ottla.sim.run import RunFailed, run_seed

SEEDS_AT_ONCE = 4
"""How many seeds a process takes at a time: their outcomes are printed together."""


class Ran(NamedTuple):
    """What a seed's run printed, whether it failed, and the processor time that it took."""

    lines: list[str]
    is_failed: bool
    cpu_s: float


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m ottla.sim", description="Run the node in the simulator.")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=1, help="how many seeds to run")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes share the seeds")
    parser.add_argument("--nodes", type=int, default=1, help="how many nodes; several form a cluster")
    parser.add_argument("--replicas", type=int, default=1, help="how many replicas topics get in a cluster")
    parser.add_argument("--registries", type=int, default=0, help="how many schema registries run in front of a cluster")
    parser.add_argument("--trace", action="store_true", help="print every event")
    parser.add_argument("--log", action="store_true", help="print the node's log, too")
    arguments = parser.parse_args()
    failed, cpu_s = 0, 0.0
    for ran in _run_all(arguments):
        failed += ran.is_failed
        cpu_s += ran.cpu_s
        sys.stdout.write("\n".join(ran.lines) + "\n")
        sys.stdout.flush()
    if arguments.count > 1:
        held = arguments.count - failed
        sys.stdout.write(f"{held} seeds held, {failed} failed, {cpu_s / arguments.count:.2f} s of CPU each\n")
    return 1 if failed else 0


def _run_all(arguments: argparse.Namespace) -> Iterator[Ran]:
    seeds = range(arguments.seed, arguments.seed + arguments.count)
    run = partial(
        _run, nodes=arguments.nodes, replicas=arguments.replicas, registries=arguments.registries, is_traced=arguments.trace
    )
    if arguments.jobs == 1:
        _prepare(arguments.log)
        yield from map(run, seeds)
        return
    with ProcessPoolExecutor(arguments.jobs, initializer=_prepare, initargs=(arguments.log,)) as processes:
        yield from processes.map(run, seeds, chunksize=SEEDS_AT_ONCE)


def _prepare(is_logged: bool) -> None:
    """Set up a process that runs seeds."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s %(message)s")
    if not is_logged:
        logging.disable(logging.CRITICAL)
    # A run makes many objects and little garbage: to collect it after the run, and never what is imported, saves 8 % of a seed.
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def _run(seed: int, nodes: int, replicas: int, registries: int, is_traced: bool) -> Ran:
    begun_s = process_time()
    lines, is_failed = _outcome(seed, nodes, replicas, registries, is_traced)
    gc.collect()
    return Ran(lines, is_failed, process_time() - begun_s)


def _outcome(seed: int, nodes: int, replicas: int, registries: int, is_traced: bool) -> tuple[list[str], bool]:
    try:
        outcome = run_seed(seed) if nodes == 1 else run_cluster_seed(seed, nodes, replicas, registries)
    except RunFailed as failure:
        return [*(failure.trace if is_traced else ()), str(failure)], True
    counts = " ".join(f"{name}={count}" for name, count in outcome.counts.items())
    return [*(outcome.trace if is_traced else ()), f"seed {seed} {outcome.digest} {counts}"], False


if __name__ == "__main__":
    raise SystemExit(main())
