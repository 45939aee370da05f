"""`make bench-spark`: the Spark source and sink beside Spark's own Kafka connector, on one broker, in turn.

python -m bench.spark                      everything, about 8 minutes; keeps the figures: results.json, plot, documents
python -m bench.spark --quick              a tenth of the records and one round; prints only (also with QUICK=1)
python -m bench.spark --kinds source --rounds 5
--save / --no-save                         keep the figures of a partial run, or do not keep those of a full one
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from importlib.metadata import version

from bench.clients.broker import BenchBroker
from bench.side_by_side.figures import Results
from bench.side_by_side.machine import machine_facts
from bench.spark import report, sink, source, stream
from bench.spark.run import Run, say, spark_session
from tests.support.servers.spark_connector import JarsUnavailable

KINDS: dict[str, Callable[[Run], None]] = {
    "source": source.measure,
    "sink": sink.measure,
    "burst": stream.measure_burst,
    "latency": stream.measure_latency,
    "partitions": source.measure_partitions,
}
"""What can be measured. Another kind is one function and one line here."""
ROUNDS, QUICK_SCALE = 3, 0.1


def read_options(arguments: list[str]) -> argparse.Namespace:
    """The options; a full run is kept unless `--no-save` is given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--quick", action="store_true", default=os.environ.get("QUICK", "") not in ("", "0"))
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--save", action=argparse.BooleanOptionalAction)
    options = parser.parse_args(arguments)
    options.kinds = options.kinds.split(",")
    unknown = [kind for kind in options.kinds if kind not in KINDS]
    if unknown:
        parser.error(f"there is no kind {', '.join(unknown)}: kinds are {', '.join(KINDS)}")
    if options.save is None:
        options.save = not options.quick and options.kinds == list(KINDS)
    options.rounds = options.rounds or (1 if options.quick else ROUNDS)
    options.scale = QUICK_SCALE if options.quick else 1.0
    return options


def main(arguments: list[str]) -> int:
    options = read_options(arguments)
    results = Results({**machine_facts(), "pyspark": version("pyspark"), "pyarrow": version("pyarrow")})
    try:
        with BenchBroker() as broker, spark_session(options.master) as spark:
            run = Run(spark, broker, results, options.rounds, options.scale)
            for kind in options.kinds:
                KINDS[kind](run)
    except JarsUnavailable as problem:
        say(str(problem))
        return 1
    print(report.terminal(results))
    if options.save:
        report.keep(results)
        say("written to bench/spark/results.json, docs/bench-spark.svg, docs/benchmarks.md and README.md")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
