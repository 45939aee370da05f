"""CPU and memory of processes: parsing of /proc and ps, and this machine."""

import os
import subprocess
import sys

from bench.side_by_side.processes import (
    MemoryPeak,
    cpu_seconds,
    memory_mb,
    parse_ps_time,
    parse_ps_tree,
    parse_stat_seconds,
)


def test_stat_of_a_process_with_brackets_in_its_name() -> None:
    line = "42 (a ) b (c) 9 9) S 1 42 42 0 -1 4194304 10 20 30 40 150 50 25 75 20 0 3 0 100 1000 10"
    assert parse_stat_seconds(line, ticks_per_second=100) == 3.0


def test_times_of_ps() -> None:
    texts = ["0:01.50", "12:03", "1:00:00", "2-01:00:00"]
    assert [parse_ps_time(text) for text in texts] == [1.5, 723, 3600, 2 * 86_400 + 3600]


def test_tree_of_ps_finds_grandchildren_listed_before_their_parents() -> None:
    table = "  30  20 0:01.00 300\n  20  10 0:02.00 200\n  10   1 0:04.00 100\n  99   1 1:00.00 999\n"
    assert sorted(parse_ps_tree(table, 10)) == [(1.0, 300), (2.0, 200), (4.0, 100)]


def test_cpu_of_a_child_counts_while_it_runs() -> None:
    program = "sum(range(20_000_000)); print('done', flush=True); input()"
    parent = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
    with subprocess.Popen(
        [sys.executable, "-c", parent, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "done\n"
        assert cpu_seconds(process.pid) > 0.1
        process.communicate("\n")


def test_memory_peak_includes_freed_memory() -> None:
    before = memory_mb(os.getpid())
    with MemoryPeak(os.getpid()) as memory:
        ballast = bytearray(os.urandom(1)) * (64 << 20)
        while memory.peak_mb < before + 32:
            pass
        del ballast
    assert memory.peak_mb > before + 32
