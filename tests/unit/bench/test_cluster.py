"""`make bench-cluster`: its options and its table."""

from bench.cluster.__main__ import FAILOVER, FAILOVERS, MEMORY, ROUNDS, START, figures, read_options
from bench.side_by_side.figures import APACHE, OTTLA, Results
from bench.side_by_side.table import terminal_text


def test_a_full_run_is_kept_and_a_quick_one_is_not() -> None:
    full, quick = read_options([]), read_options(["--quick"])
    assert (full.save, full.rounds, full.failovers) == (True, ROUNDS, FAILOVERS)
    assert (quick.save, quick.rounds, quick.failovers) == (False, 1, 1)
    assert read_options(["--quick", "--save", "--rounds", "4"]).save
    assert read_options(["--no-save"]).rounds == ROUNDS


def test_ratios_are_held_to_their_goals() -> None:
    apache = {START: [10_000.0], FAILOVER: [3000.0, 2000.0, 1000.0], MEMORY: [1500.0]}
    ottla = {START: [1500.0], FAILOVER: [3300.0, 2400.0, 1200.0], MEMORY: [150.0]}
    results = Results()
    results.add(figures({APACHE: apache, OTTLA: ottla}))
    start, failover, memory = results.figures.values()
    assert (round(start.ratio, 2), start.verdict) == (0.15, "reached")
    assert (round(failover.ratio, 2), failover.verdict) == (1.2, "missed by 20%")
    assert (round(memory.ratio, 2), memory.verdict) == (0.1, "reached")
    assert "≤ 0.2 ×" in terminal_text(results)
