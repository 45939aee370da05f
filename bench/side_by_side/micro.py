"""The micro-benchmarks as a row: they compare with Python peers by themselves; their tables are in docs/benchmarks.md."""

from bench import report
from bench.side_by_side.figures import Figure
from bench.side_by_side.sides import Bench


def rows(bench: Bench) -> list[Figure]:
    bench.end_pair()
    bench.progress.say("the micro-benchmarks")
    bench.micro = report.measure_micro()
    return []
