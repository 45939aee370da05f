"""The raw rows: batches of 1 MB over one connection, several in flight, compared with the loopback limit of the same round.

In: Produce requests with acks=all. Out: Fetch requests for one batch each, of a topic in the page cache. The same sender loads
the limit (bench/side_by_side/loads/loopback.py), Apache Kafka and Ottla. An MB is 10^6 bytes of batches.
"""

import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path

from bench.side_by_side.admin import create_topic, delete_topic
from bench.side_by_side.errors import BadReply
from bench.side_by_side.figures import Figure, at_least
from bench.side_by_side.loads import frames
from bench.side_by_side.sides import Bench, Side

TOPIC = "raw"
RECORDS_PER_BATCH, VALUE_BYTES = 1000, 1000
BATCHES, BATCHES_QUICK = 1000, 200
WINDOW = 5
REPLY_BUFFER_BYTES = 2 << 20
GOAL = at_least(0.6)
ROOT = Path(__file__).parents[2]


def rows(bench: Bench) -> list[Figure]:
    records = frames.batch(RECORDS_PER_BATCH, VALUE_BYTES)
    count = bench.options.scaled(BATCHES, BATCHES_QUICK)
    taken: dict[str, list[float]] = {"limit in": [], "limit out": []}
    rounds = bench.options.rounds
    for number in range(rounds + 1):
        measured = limit_round(bench, records, count)
        for side in bench.pair:
            rates = side_round(side, records, count)
            measured |= {f"{side.label} in": rates[0], f"{side.label} out": rates[1]}
        if number == 0:  # warm-up: both servers' code for large batches
            continue
        for name, rate in measured.items():
            taken.setdefault(name, []).append(rate)
        text = ", ".join(f"{name} {rate:,.0f}" for name, rate in measured.items())
        bench.progress.say(f"raw 1 MB batches, MB/s, round {number} of {rounds}: {text}")
    apache, ottla = (side.label for side in bench.pair)
    return [
        Figure(
            f"raw:{way}",
            f"1 MB batches {way}, raw protocol",
            "MB/s",
            taken[f"{apache} {way}"],
            taken[f"{ottla} {way}"],
            GOAL,
            taken[f"limit {way}"],
            f"the loopback limit {way}",
        )
        for way in ("in", "out")
    ]


def limit_round(bench: Bench, records: bytearray, count: int) -> dict[str, float]:
    """MB/s into a file and out of it."""
    path = bench.folder / "loopback"
    frame = len(records).to_bytes(4, "big") + records
    try:
        with loopback("in", path) as address:
            rate_in = timed(address, repeat(frame, count), len(records) * count)
        ask = (16).to_bytes(4, "big")
        pieces = [ask + (number * len(records)).to_bytes(8, "big") + len(records).to_bytes(8, "big") for number in range(count)]
        with loopback("out", path) as address:
            rate_out = timed(address, pieces, len(records) * count)
    finally:
        path.unlink(missing_ok=True)
    return {"limit in": rate_in, "limit out": rate_out}


def side_round(side: Side, records: bytearray, count: int) -> tuple[float, float]:
    """MB/s into a topic and out of it."""
    create_topic(side.server, TOPIC, 1)
    frame = frames.produce_frame(TOPIC, 0, records)
    with frames.connect(side.server.bootstrap) as connection:
        frames.write_first(connection, frame, TOPIC)
    bootstrap, volume_bytes = side.server.bootstrap, len(records) * count
    rate_in = timed(bootstrap, repeat(frame, count), volume_bytes, frames.produce_check(side.label, TOPIC))
    offsets = range(0, RECORDS_PER_BATCH * count, RECORDS_PER_BATCH)

    def whole_batch(reply: frames.Reply) -> None:
        if len(reply) < len(records):
            raise BadReply(f"{side.label} answers with {len(reply)} bytes where a batch of {len(records)} was asked for")

    asked = [frames.fetch_frame(TOPIC, 0, offset, len(records)) for offset in offsets]
    rate_out = timed(bootstrap, asked, volume_bytes, whole_batch)
    delete_topic(side.server, TOPIC)
    return rate_in, rate_out


def timed(address: str, asked: Iterable[bytes], volume_bytes: int, check: frames.CheckReply = frames.no_check) -> float:
    """MB/s of one load."""
    with frames.connect(address) as connection:
        began = time.perf_counter()
        frames.pipeline(connection, asked, WINDOW, REPLY_BUFFER_BYTES, check)
        return volume_bytes / 1e6 / (time.perf_counter() - began)


@contextmanager
def loopback(direction: str, path: Path) -> Iterator[str]:
    """Start the process that measures the limit; yields its address."""
    command = [sys.executable, "-m", "bench.side_by_side.loads.loopback", direction, str(path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"127.0.0.1:{process.stdout.readline().strip()}"
            process.wait(frames.TIMEOUT_S)
        except BaseException:
            process.kill()
            raise
