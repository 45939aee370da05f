"""The compaction rows: p99 of produce requests at a steady rate on a quiet node, and while it compacts a topic of 1 GB.

The topic is filled with every key twice before compaction is turned on. The compaction is over when the server's cleaner
checkpoint has passed all segments but the last. The probe writes 1 KB at a time to its own topic.
"""

import os
import time
from collections.abc import Callable

from bench.side_by_side import produce
from bench.side_by_side.admin import alter_topic, create_topic, delete_topic
from bench.side_by_side.errors import LoadFailed
from bench.side_by_side.figures import Figure, at_most
from bench.side_by_side.loads import frames
from bench.side_by_side.loads.probe import Caller, Load, percentile
from bench.side_by_side.sides import Bench, Side

TOPIC, PROBE_TOPIC = "compaction", "compaction-probe"
RECORDS_PER_BATCH, VALUE_BYTES = 1000, 1000
BATCHES, BATCHES_QUICK = 1000, 200
SEGMENT_BYTES, SEGMENT_BYTES_QUICK = 100_000_000, 20_000_000
PROBE_PER_S = 500
WARM_UP_S, WARM_UP_S_QUICK = 4, 2
QUIET_S, QUIET_S_QUICK = 8, 3
COMPACTED_WITHIN_S = 180
CHECK_S = 0.05
WINDOW = 5
GOAL = at_most(2.0)


def rows(bench: Bench) -> list[Figure]:
    produce.warm_up(bench)
    quiet: tuple[list[float], list[float]] = ([], [])
    busy: tuple[list[float], list[float]] = ([], [])
    for number in range(1, bench.options.rounds + 1):
        for index, side in enumerate(bench.pair):
            quiet_ms, busy_ms, took_s = measure(bench, side)
            quiet[index].append(quiet_ms)
            busy[index].append(busy_ms)
            text = f"{side.label} p99 {quiet_ms:.2f} ms quiet, {busy_ms:.2f} ms in the {took_s:.1f} s of the compaction"
            bench.progress.say(f"compaction, round {number} of {bench.options.rounds}: {text}")
    size = "0.2 GB" if bench.options.quick else "1 GB"
    what = f"p99 produce latency while {size} is compacted"
    return [
        Figure("compaction:quiet", f"p99 produce latency, {PROBE_PER_S} requests/s", "ms", *quiet),
        Figure("compaction:busy", what, "ms", *busy, goal=GOAL, reference=quiet[1], reference_name="the quiet p99"),
    ]


def measure(bench: Bench, side: Side) -> tuple[float, float, float]:
    """(p99 in ms on a quiet node, p99 in ms during the compaction, seconds of the compaction)."""
    batches = bench.options.scaled(BATCHES, BATCHES_QUICK)
    fill(side, batches, bench.options.scaled(SEGMENT_BYTES, SEGMENT_BYTES_QUICK))
    os.sync()  # or the fill is still written to disk during the quiet measurement
    create_topic(side.server, PROBE_TOPIC, 1)
    frame = frames.produce_frame(PROBE_TOPIC, 0, frames.batch(1, VALUE_BYTES))
    connection = frames.connect(side.server.bootstrap)
    frames.write_first(connection, frame, PROBE_TOPIC)
    with Load([Caller(connection, frame)], frames.produce_check(side.label, PROBE_TOPIC)) as load:
        warm_up_end = time.perf_counter() + bench.options.scaled(WARM_UP_S, WARM_UP_S_QUICK)
        load.paced(PROBE_PER_S, lambda: time.perf_counter() > warm_up_end)
        quiet_end = time.perf_counter() + bench.options.scaled(QUIET_S, QUIET_S_QUICK)
        quiet = load.paced(PROBE_PER_S, lambda: time.perf_counter() > quiet_end)
        alter_topic(side.server, TOPIC, {"cleanup.policy": "compact"})
        began = time.perf_counter()
        # The last segment is never compacted, so the checkpoint cannot reach the end.
        goal_offset = batches * RECORDS_PER_BATCH // 2
        busy = load.paced(PROBE_PER_S, compacted(side, goal_offset))
        took_s = time.perf_counter() - began
    for topic in (TOPIC, PROBE_TOPIC):
        delete_topic(side.server, topic)
    return _p99_ms(quiet), _p99_ms(busy), took_s


def fill(side: Side, batches: int, segment_bytes: int) -> None:
    """Fill the topic: every key twice, the second time in the second half."""
    create_topic(side.server, TOPIC, 1, {"cleanup.policy": "delete", "segment.bytes": str(segment_bytes)})
    keys = [number % (batches // 2) * RECORDS_PER_BATCH for number in range(batches)]
    asked = (frames.produce_frame(TOPIC, 0, frames.batch(RECORDS_PER_BATCH, VALUE_BYTES, key)) for key in keys)
    with frames.connect(side.server.bootstrap) as connection:
        frames.write_first(connection, next(asked), TOPIC)
        frames.pipeline(connection, asked, WINDOW, 1 << 10, frames.produce_check(side.label, TOPIC))


def compacted(side: Side, goal_offset: int) -> Callable[[], bool]:
    """A function that checks periodically whether the cleaner checkpoint has passed `goal_offset`."""
    path = side.server.data_dir / "cleaner-offset-checkpoint"
    deadline = time.perf_counter() + COMPACTED_WITHIN_S
    next_look = 0.0

    def over() -> bool:
        nonlocal next_look
        now = time.perf_counter()
        if now < next_look:
            return False
        next_look = now + CHECK_S
        if now > deadline:
            raise LoadFailed(f"{side.label} had not compacted the topic after {COMPACTED_WITHIN_S} s")
        return path.exists() and checkpoint_offset(path.read_text(), TOPIC, 0) >= goal_offset

    return over


def checkpoint_offset(text: str, topic: str, partition: int) -> int:
    """The offset of a partition in a checkpoint file (`topic partition offset` per line, after two lines of counts), or -1."""
    for line in text.splitlines()[2:]:
        name, index, offset = line.rsplit(" ", 2)
        if name == topic and int(index) == partition:
            return int(offset)
    return -1


def _p99_ms(samples: list[tuple[float, float]]) -> float:
    return percentile([took_s for _, took_s in samples], 0.99) * 1000
