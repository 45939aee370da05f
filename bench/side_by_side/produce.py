"""The produce rows: Kafka's own ProducerPerformance with acks=all against one side and then the other, several rounds.

Each gives the throughput that the tool reports (in MB of 2^20 bytes) and the broker's CPU seconds per GB (10^9 bytes of
values). Each run writes to its own topic, which is deleted before the next run begins.
"""

import re
from dataclasses import dataclass

from bench.side_by_side.admin import create_topic, delete_topic
from bench.side_by_side.errors import LoadFailed
from bench.side_by_side.figures import Figure, Goal, at_least, at_most
from bench.side_by_side.processes import MemoryPeak, cpu_seconds
from bench.side_by_side.sides import Bench, Side

TOOL = "org.apache.kafka.tools.ProducerPerformance"
WARM_UP_RECORDS = 500_000
"""With fewer, Java's compiler is still busy during the measurement, and its CPU time counts as the broker's."""

WARM_UP_BYTES = 1000
FINAL_LINE = re.compile(r"records sent, .*\(([\d.]+) MB/sec\).*avg latency")


@dataclass(frozen=True, slots=True)
class Load:
    part: str
    what: str
    partitions: int
    record_bytes: int
    records: int
    quick_records: int
    goal: Goal


LOADS = (
    Load("1kb-6", "produce 1 KB × 6 partitions", 6, 1000, 1_000_000, 200_000, at_least(1.15)),
    Load("1kb-1", "produce 1 KB × 1 partition", 1, 1000, 1_000_000, 200_000, at_least(1.4)),
    Load("100b-6", "produce 100 B × 6 partitions", 6, 100, 5_000_000, 1_000_000, at_least(1.1)),
)
CPU_GOAL = at_most(0.55)


@dataclass(frozen=True, slots=True)
class Sample:
    mb_per_s: float
    cpu_s_per_gb: float
    peak_mb: float


def parse_rate(output: str) -> float:
    """MB/s of the whole run, from the tool's last summary line."""
    rates = FINAL_LINE.findall(output)
    if not rates:
        raise LoadFailed(f"ProducerPerformance printed no summary:\n{output[-2000:]}")
    if not float(rates[-1]):
        raise LoadFailed(f"ProducerPerformance wrote nothing:\n{output[-2000:]}")
    return float(rates[-1])


def run_tool(bench: Bench, side: Side, topic: str, records: int, record_bytes: int) -> float:
    """Run Kafka's tool once with its defaults and acks=all; returns MB/s."""
    arguments: list[object] = ["--topic", topic, "--num-records", records, "--record-size", record_bytes, "--throughput", -1]
    properties = [f"bootstrap.servers={side.server.bootstrap}", "acks=all"]
    output = bench.run_class(TOOL, *arguments, "--command-property", *properties)
    if "Exception" in output:
        raise LoadFailed(f"ProducerPerformance could not write all records to {side.label}:\n{output[-2000:]}")
    return parse_rate(output)


def measure(bench: Bench, side: Side, load: Load, topic: str) -> Sample:
    """One run of one load against one side."""
    records = bench.options.scaled(load.records, load.quick_records)
    create_topic(side.server, topic, load.partitions)
    with MemoryPeak(side.pid) as memory:
        before = cpu_seconds(side.pid)
        rate = run_tool(bench, side, topic, records, load.record_bytes)
        spent = cpu_seconds(side.pid) - before
    delete_topic(side.server, topic)
    bench.peaks_mb[side.label] = max(bench.peaks_mb.get(side.label, 0.0), memory.peak_mb)
    return Sample(rate, spent / (records * load.record_bytes / 1e9), memory.peak_mb)


def warm_up(bench: Bench) -> None:
    """Warm up both servers, once per pair."""
    for side in bench.pair:
        if side.warm:
            continue
        bench.progress.say(f"warming up {side.label}")
        create_topic(side.server, "warm-up", 6)
        run_tool(bench, side, "warm-up", WARM_UP_RECORDS, WARM_UP_BYTES)
        delete_topic(side.server, "warm-up")
        side.warm = True


def rows(bench: Bench) -> list[Figure]:
    """All loads, or the parts chosen by ROWS."""
    warm_up(bench)
    figures: list[Figure] = []
    for load in LOADS:
        if bench.options.wants_part("produce", load.part):
            figures += load_figures(bench, load)
    return figures


def load_figures(bench: Bench, load: Load) -> list[Figure]:
    samples: tuple[list[Sample], list[Sample]] = ([], [])
    for number in range(1, bench.options.rounds + 1):
        for side, kept in zip(bench.pair, samples, strict=True):
            sample = measure(bench, side, load, f"produce-{load.part}-{number}")
            kept.append(sample)
            text = f"{sample.mb_per_s:.0f} MB/s, {sample.cpu_s_per_gb:.2f} CPU s/GB, {sample.peak_mb:.0f} MB"
            bench.progress.say(f"{load.what}, round {number} of {bench.options.rounds}: {side.label} {text}")
    apache, ottla = samples
    return [
        Figure(
            f"produce:{load.part}",
            f"{load.what}, acks=all",
            "MB/s",
            [each.mb_per_s for each in apache],
            [each.mb_per_s for each in ottla],
            load.goal,
        ),
        Figure(
            f"cpu:{load.part}",
            f"broker CPU, {load.what}",
            "s per GB",
            [each.cpu_s_per_gb for each in apache],
            [each.cpu_s_per_gb for each in ottla],
            CPU_GOAL,
        ),
    ]
