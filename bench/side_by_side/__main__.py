"""`make bench-servers`: measures Apache Kafka and Ottla in turn, under the same loads on the same machine.

    make bench-servers                                  all rows, about 20 minutes; keeps the figures
    make bench-servers QUICK=1                          all rows but micro with little data, a few minutes; prints only
    make bench-servers ROWS=produce,consume ROUNDS=5    some rows; `ROWS=produce:1kb-6` is one part of a row
    SAVE=1 / SAVE=0                                     keep the figures of a partial run, or do not keep those of a full one

Rows: start, produce (and cpu), memory, consume, latency, groups, offsets, transactions, raw, many, compaction, secure, micro.
However the run ends, its servers are stopped and its temporary data is deleted.
"""

import importlib
import os
import signal
import sys
import traceback
import types

from bench import report
from bench.side_by_side.errors import BadOption, BenchFailed
from bench.side_by_side.figures import Results
from bench.side_by_side.machine import machine_facts
from bench.side_by_side.options import ROWS, read_options
from bench.side_by_side.progress import Progress
from bench.side_by_side.sides import Bench
from bench.side_by_side.table import terminal_text
from tests.support.servers.apache_kafka import KafkaUnavailable


def main() -> int:
    try:
        options = read_options(os.environ)
    except BadOption as bad:
        sys.exit(str(bad))
    # Every signal that ends a run cleans up like Ctrl-C. SIGINT is set too: a shell ignores it for its background jobs.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    # Users have cached bytecode. A start that compiles all modules would not be what they see.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    progress = Progress()
    results = Results(machine=machine_facts())
    code = 0
    try:
        with Bench(options, progress) as bench:
            for row in filter(options.wants, ROWS):
                if not measure(bench, row, results):
                    code = 1
    except KafkaUnavailable as missing:
        sys.exit(f"the benchmark needs Apache Kafka to compare with: {missing}")
    except KeyboardInterrupt:
        progress.say("interrupted: servers are stopped and temporary data is deleted; results so far:")
        code = 130
    if results.figures:
        print(terminal_text(results))
    if options.save:
        progress.say("written to bench/results.json, docs/bench.svg, docs/benchmarks.md and README.md")
    return code


def measure(bench: Bench, row: str, results: Results) -> bool:
    """Measure one row, and write its figures at once if they are kept. After a failure the next row gets new servers."""
    try:
        results.add(importlib.import_module(f"bench.side_by_side.{row}").rows(bench))
    except Exception as failure:
        reason = str(failure) if isinstance(failure, BenchFailed) else traceback.format_exc()
        bench.progress.say(f"the row {row} FAILED: {reason}\n{bench.log_tails()}")
        bench.end_pair()
        return False
    results.micro = bench.micro
    if bench.options.save:
        report.keep(results)
    return True


def _interrupt(signum: int, frame: types.FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
