"""`python -m ottla.sim [--nodes K] --seed N [--count M] [--trace]`: runs seeds, prints outcomes and, if asked, every event."""

from __future__ import annotations

import argparse
import logging
import sys
import time

from ottla.sim.cluster.run import run_cluster_seed
from ottla.sim.run import RunFailed, run_seed


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m ottla.sim", description="Run the node in the simulator.")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=1, help="how many seeds to run")
    parser.add_argument("--nodes", type=int, default=1, help="how many nodes; several form a cluster")
    parser.add_argument("--replicas", type=int, default=1, help="how many replicas topics get in a cluster")
    parser.add_argument("--trace", action="store_true", help="print every event")
    parser.add_argument("--log", action="store_true", help="print the node's log, too")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s %(message)s")
    if not arguments.log:
        logging.disable(logging.CRITICAL)
    failed, begun_s = 0, time.process_time()
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        try:
            is_alone = arguments.nodes == 1
            outcome = run_seed(seed) if is_alone else run_cluster_seed(seed, arguments.nodes, arguments.replicas)
        except RunFailed as failure:
            failed += 1
            if arguments.trace:
                _say(failure.trace)
            _say([str(failure)])
            continue
        if arguments.trace:
            _say(outcome.trace)
        _say([f"seed {seed} {outcome.digest} {' '.join(f'{name}={count}' for name, count in outcome.counts.items())}"])
    if arguments.count > 1:
        spent_s = (time.process_time() - begun_s) / arguments.count
        _say([f"{arguments.count - failed} seeds held, {failed} failed, {spent_s:.2f} s of CPU each"])
    return 1 if failed else 0


def _say(lines: list[str]) -> None:
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    raise SystemExit(main())
