"""Throughput of appends to and reads from a partition log, compared with bare file writes and reads in the same run.

    python bench/log_bench.py [--batch-bytes 16384] [--slice-mb 1] [--rounds 300] [--folder DIR] [--json]

Every row is measured in many short slices, the rows taking turns, and the best slice counts: on a shared machine only
measurements of the same moment can be compared. Files grow throughout, as logs do.

    write limit         os.pwrite of the same batch at a growing position, into the page cache
    crc limit           CRC-32C of the same bytes
    append              PartitionLog.append_as_leader: checked, patched, written, indexed
    append, idempotent  the same with a producer id and sequences, so that order and duplicates are checked too
    append, follower    PartitionLog.append_as_follower of eight batches at a time
    read limit          os.pread of 1 MB pieces
    read                PartitionLog.read of consecutive 1 MB pieces, with their bytes
    read, ranges only   the same without the bytes, like a fetch that uses sendfile

`append` must reach 0.5 of the write limit (exit code 1 if it does not). docs/decisions/0005-hot-path.md has the profile.
"""

import argparse
import asyncio
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import crc32c

from ottla.config.topic import LogConfig
from ottla.env.real import RealClock, RealDisk, ThreadWorkers
from ottla.log.partition_log import PartitionLog
from ottla.log.read import Isolation
from ottla.log.recovery.log_loader import load_log
from ottla.records.batch import BatchView
from ottla.records.builder import build_batch
from ottla.records.patch import set_base_offset_and_epoch
from ottla.records.record import Record

RECORD_BYTES = 1024
READ_BYTES = 1 << 20
MB = 1e6
FOLLOWER_BATCHES = 8
NO_OFFSET = bytes(8)


def make_batch(batch_bytes: int, producer_id: int = -1) -> bytearray:
    """About `batch_bytes` of 1 KB records."""
    now_ms = time.time_ns() // 1_000_000
    count = max(1, batch_bytes // RECORD_BYTES)
    value = os.urandom(min(RECORD_BYTES, batch_bytes) - 24)
    records = [Record(index, now_ms, None, value, ()) for index in range(count)]
    identity = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0} if producer_id >= 0 else {}
    return build_batch(records, **identity)  # type: ignore[arg-type]  # all of them are ints


class WriteLimit:
    """A file that grows by bare system calls."""

    def __init__(self, path: Path) -> None:
        self.fd = os.open(path, os.O_CREAT | os.O_RDWR)
        self.position = 0

    def write(self, batch: bytearray, batches: int) -> None:
        for _ in range(batches):
            self.position += os.pwrite(self.fd, batch, self.position)

    def read(self, position: int, pieces: int) -> None:
        for _ in range(pieces):
            position += len(os.pread(self.fd, READ_BYTES, position))


def crc_limit(batch: bytearray, batches: int) -> None:
    view = memoryview(batch)[21:]
    for _ in range(batches):
        crc32c.crc32c(view)


async def new_log(folder: Path) -> PartitionLog:
    shutil.rmtree(folder, ignore_errors=True)
    log, _ = await load_log(RealDisk(ThreadWorkers()), RealClock(), str(folder), LogConfig())
    return log


def append(log: PartitionLog, batch: bytearray, batches: int) -> None:
    for _ in range(batches):
        batch[0:8] = NO_OFFSET
        log.append_as_leader(batch, 0)


class Idempotent:
    """Batches of one producer with consecutive sequences. They are built outside the measured time."""

    def __init__(self, batch: bytearray) -> None:
        self.batch = batch
        self.count = BatchView(batch).count
        self.sequence = 0

    def prepare(self, batches: int) -> list[bytearray]:
        made = []
        for _ in range(batches):
            batch = bytearray(self.batch)
            batch[53:57] = self.sequence.to_bytes(4, "big")
            batch[17:21] = crc32c.crc32c(memoryview(batch)[21:]).to_bytes(4, "big")
            self.sequence += self.count
            made.append(batch)
        return made


def append_all(log: PartitionLog, made: list[bytearray]) -> None:
    for batch in made:
        log.append_as_leader(batch, 0)


class Follower:
    """Chunks as a leader sends them: eight batches each. Offsets are written outside the measured time."""

    def __init__(self, log: PartitionLog, batch: bytearray) -> None:
        self.log = log
        self.count = BatchView(batch).count
        self.size = len(batch)
        self.chunk = bytearray(batch * FOLLOWER_BATCHES)

    def prepare(self, chunks: int) -> list[bytearray]:
        made, offset = [], self.log.log_end_offset
        for _ in range(chunks):
            for number in range(FOLLOWER_BATCHES):
                set_base_offset_and_epoch(self.chunk, number * self.size, offset, 0)
                offset += self.count
            made.append(bytearray(self.chunk))
        return made

    def append(self, made: list[bytearray]) -> None:
        for chunk in made:
            self.log.append_as_follower(chunk, 0)


def read(log: PartitionLog, offset: int, step: int, pieces: int, with_bytes: bool) -> None:
    for _ in range(pieces):
        info = log.read(offset, READ_BYTES, Isolation.HIGH_WATERMARK)
        if with_bytes and info.records is not None:
            info.records.read()
        offset += step


async def measure(folder: Path, batch_bytes: int, slice_mb: int, rounds: int) -> dict[str, float]:
    """Bytes (or reads) per second in the best slice of each row."""
    plain = make_batch(batch_bytes)
    batches = max(FOLLOWER_BATCHES, int(slice_mb * MB / len(plain)) // FOLLOWER_BATCHES * FOLLOWER_BATCHES)
    size = len(plain) * batches
    limit = WriteLimit(folder / "limit")
    logs = [await new_log(folder / f"bench-{number}") for number in range(3)]
    idempotent, follower = Idempotent(make_batch(batch_bytes, producer_id=7)), Follower(logs[2], plain)
    count = BatchView(plain).count
    step = READ_BYTES // len(plain) * count
    pieces = max(1, size // READ_BYTES)
    best: dict[str, float] = {}

    def slice_of(name: str, done: int, work: Callable[[], None]) -> None:
        start = time.perf_counter()
        work()
        best[name] = max(best.get(name, 0.0), done / (time.perf_counter() - start))

    for _ in range(rounds):
        slice_of("write limit", size, lambda: limit.write(plain, batches))
        start_offset = logs[0].log_end_offset
        slice_of("append", size, lambda: append(logs[0], plain, batches))
        slice_of("crc limit", size, lambda: crc_limit(plain, batches))
        made = idempotent.prepare(batches)
        slice_of("append, idempotent", size, partial(append_all, logs[1], made))
        made = follower.prepare(batches // FOLLOWER_BATCHES)
        slice_of("append, follower", size, partial(follower.append, made))
        logs[0].update_high_watermark(logs[0].log_end_offset)
        slice_of("read limit", pieces * READ_BYTES, partial(limit.read, limit.position - size, pieces))
        slice_of("read", pieces * READ_BYTES, partial(read, logs[0], start_offset, step, pieces, True))
        slice_of("read, ranges only (reads/s)", pieces, partial(read, logs[0], start_offset, step, pieces, False))
    for log in logs:
        await log.close()
    return best


def main() -> int:
    parser = argparse.ArgumentParser(description="append and read of a partition log beside the machine's own limit")
    parser.add_argument("--batch-bytes", type=int, default=16384)
    parser.add_argument("--slice-mb", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--folder", type=Path, help="where to write; default: a temporary folder")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="ottla-bench-", dir=arguments.folder))
    try:
        rows = asyncio.run(measure(folder, arguments.batch_bytes, arguments.slice_mb, arguments.rounds))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    ratios = {
        "append / write limit": rows["append"] / rows["write limit"],
        "append, idempotent / write limit": rows["append, idempotent"] / rows["write limit"],
        "append, follower / write limit": rows["append, follower"] / rows["write limit"],
        "read / read limit": rows["read"] / rows["read limit"],
    }
    ratios["append / (write and crc limit)"] = rows["append"] * (1 / rows["write limit"] + 1 / rows["crc limit"])
    if arguments.json:
        print(json.dumps({"batch_bytes": arguments.batch_bytes, "rows": rows, "ratios": ratios}, indent=2))
    else:
        for name, value in rows.items():
            print(f"{name:32} {value:12,.0f}" if "reads/s" in name else f"{name:32} {value / MB:12,.0f} MB/s")
        for name, value in ratios.items():
            print(f"{name:32} {value:12.2f}")
    return 0 if ratios["append / write limit"] >= 0.5 else 1


if __name__ == "__main__":
    sys.exit(main())
