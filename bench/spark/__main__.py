"""The Spark source and sink beside Spark's own Kafka connector, on one broker, in turn.

python -m bench.spark                      everything; keeps the figures in bench/spark/results.json
python -m bench.spark --quick              a tenth of the records and one round; prints only (also with QUICK=1)
python -m bench.spark --kinds source --rounds 5 --no-save
python -m bench.spark --ours-only          without Spark's connector, so without Maven
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from bench.clients.broker import BenchBroker
from bench.side_by_side.machine import machine_facts
from bench.spark import sink, source
from bench.spark.results import SparkResults, table
from bench.spark.run import Run, say, spark_session
from tests.support.servers.spark_connector import JarsUnavailable

KINDS: dict[str, Callable[[Run], None]] = {"source": source.measure, "sink": sink.measure}
"""What can be measured. Another kind is one function and one line here."""
RESULTS = Path(__file__).parent / "results.json"
ROUNDS, QUICK_SCALE = 3, 0.1


def read_options(arguments: list[str]) -> argparse.Namespace:
    """The options; a full run is kept unless it is told otherwise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--quick", action="store_true", default=os.environ.get("QUICK", "") not in ("", "0"))
    parser.add_argument("--ours-only", action="store_true")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--save", action=argparse.BooleanOptionalAction)
    options = parser.parse_args(arguments)
    options.kinds = options.kinds.split(",")
    unknown = [kind for kind in options.kinds if kind not in KINDS]
    if unknown:
        parser.error(f"there is no kind {', '.join(unknown)}: kinds are {', '.join(KINDS)}")
    if options.save is None:
        options.save = not (options.quick or options.ours_only) and options.kinds == list(KINDS)
    options.rounds = options.rounds or (1 if options.quick else ROUNDS)
    options.scale = QUICK_SCALE if options.quick else 1.0
    return options


def main(arguments: list[str]) -> int:
    options = read_options(arguments)
    results = SparkResults({**machine_facts(), "pyspark": version("pyspark"), "pyarrow": version("pyarrow")})
    has_connector = not options.ours_only
    try:
        with BenchBroker() as broker, spark_session(options.master, has_connector) as spark:
            run = Run(spark, broker, results, options.rounds, options.scale, has_connector)
            for kind in options.kinds:
                KINDS[kind](run)
    except JarsUnavailable as problem:
        say(f"{problem}\n--ours-only measures without Spark's connector")
        return 1
    print(table(results))
    if options.save:
        RESULTS.write_text(json.dumps(results.to_json(), indent=1) + "\n")
        say(f"written to {RESULTS.relative_to(Path.cwd()) if RESULTS.is_relative_to(Path.cwd()) else RESULTS}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
