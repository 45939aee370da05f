"""The micro-benchmarks as a row. They compare Ottla with other Python libraries; docs/benchmarks.md has their tables."""

from bench import report
from bench.side_by_side.figures import Figure
from bench.side_by_side.sides import Bench


def rows(bench: Bench) -> list[Figure]:
    bench.end_pair()
    bench.progress.say("the micro-benchmarks")
    bench.micro = report.measure_micro()
    return []
