"""The memory rows: resident memory of a server that has just started and does nothing, and its peak under the produce loads.

The peak is that of the produce rows if they ran in this run, else of one produce load.
"""

from bench.side_by_side import produce
from bench.side_by_side.figures import APACHE, OTTLA, Figure, at_most
from bench.side_by_side.sides import Bench

GOAL = at_most(0.2)


def rows(bench: Bench) -> list[Figure]:
    if not bench.peaks_mb:
        produce.warm_up(bench)
        for side in bench.pair:
            produce.measure(bench, side, produce.LOADS[0], "memory")
    for side in bench.pair:
        idle_mb, peak_mb = bench.idle_mb[side.label], bench.peaks_mb[side.label]
        bench.progress.say(f"memory: {side.label} {idle_mb:.0f} MB idle, {peak_mb:.0f} MB under load")
    return [
        Figure("memory:idle", "memory, idle", "MB", [bench.idle_mb[APACHE]], [bench.idle_mb[OTTLA]], GOAL),
        Figure("memory:load", "memory, peak while producing", "MB", [bench.peaks_mb[APACHE]], [bench.peaks_mb[OTTLA]], GOAL),
    ]
