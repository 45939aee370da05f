"""How fast a partition log takes and gives batches, beside the machine's own file limit in the same run.

    python bench/log_bench.py [--batch-bytes 16384] [--total-mb 512] [--rounds 5] [--folder DIR] [--json]

Rows, each the best of interleaved rounds, since the machines this runs on are noisy and only ratios of one run count:

    write limit        os.pwrite of the same batch at a growing position: what the page cache takes
    append             PartitionLog.append_as_leader: checked (CRC-32C), patched, written, indexed
    append, idempotent the same with a producer id and sequences: duplicates and order are checked too
    append, follower   PartitionLog.append_as_follower of eight batches at a time
    crc limit          CRC-32C of the same bytes: no leader can be faster than this and the write together
    read limit         os.pread of 1 MB pieces
    read               PartitionLog.read of 1 MB pieces from where the last one ended, and their bytes
    read, ranges only  the same without the bytes, as a fetch does that ends in sendfile: reads per second

`append` must reach 0.5 of the write limit. What was found with the profiler is in docs/decisions/0012-log-hot-path.md.
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
from pathlib import Path

import crc32c

from ottla.config.topic import LogConfig
from ottla.env.real import RealClock, RealDisk, ThreadWorkers
from ottla.log.loading import load_log
from ottla.log.partition_log import PartitionLog
from ottla.log.read import Isolation
from ottla.records.batch import BatchView
from ottla.records.builder import build_batch
from ottla.records.patch import set_base_offset_and_epoch
from ottla.records.record import Record

RECORD_BYTES = 1024
READ_BYTES = 1 << 20
MB = 1e6


def make_batch(batch_bytes: int, producer_id: int = -1) -> bytearray:
    """About `batch_bytes` of 1 KB records."""
    now_ms = time.time_ns() // 1_000_000
    count = max(1, batch_bytes // RECORD_BYTES)
    value = os.urandom(min(RECORD_BYTES, batch_bytes) - 24)
    records = [Record(index, now_ms, None, value, ()) for index in range(count)]
    identity = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0} if producer_id >= 0 else {}
    return build_batch(records, **identity)  # type: ignore[arg-type]  # all of them are ints


def timed(work: Callable[[], int]) -> float:
    """MB/s (or calls/s) of a piece of work that returns how much it did."""
    start = time.perf_counter()
    done = work()
    return done / (time.perf_counter() - start)


def write_limit(folder: Path, batch: bytearray, batches: int) -> int:
    path = folder / "limit"
    fd = os.open(path, os.O_CREAT | os.O_RDWR | os.O_TRUNC)
    position = 0
    for _ in range(batches):
        position += os.pwrite(fd, batch, position)
    os.close(fd)
    return position


def crc_limit(batch: bytearray, batches: int) -> int:
    view = memoryview(batch)[21:]
    for _ in range(batches):
        crc32c.crc32c(view)
    return len(batch) * batches


async def new_log(folder: Path) -> PartitionLog:
    shutil.rmtree(folder, ignore_errors=True)
    log, _ = await load_log(RealDisk(ThreadWorkers()), RealClock(), str(folder), LogConfig())
    return log


def append(log: PartitionLog, batch: bytearray, batches: int) -> int:
    for _ in range(batches):
        set_base_offset_and_epoch(batch, 0, 0, -1)
        log.append_as_leader(batch, 0)
    return len(batch) * batches


def append_idempotent(log: PartitionLog, batch: bytearray, batches: int) -> int:
    """The sequence is inside the CRC: the cost of writing a new one is taken off by `idempotent_preparation`."""
    view = BatchView(batch)
    for number in range(batches):
        prepare_sequence(batch, number * view.count)
        log.append_as_leader(batch, 0)
    return len(batch) * batches


def prepare_sequence(batch: bytearray, sequence: int) -> None:
    set_base_offset_and_epoch(batch, 0, 0, -1)
    batch[53:57] = sequence.to_bytes(4, "big")
    batch[17:21] = crc32c.crc32c(memoryview(batch)[21:]).to_bytes(4, "big")


def idempotent_preparation(batch: bytearray, batches: int) -> float:
    start = time.perf_counter()
    for number in range(batches):
        prepare_sequence(batch, number)
    return time.perf_counter() - start


def append_follower(log: PartitionLog, batch: bytearray, batches: int) -> int:
    together = 8
    count = BatchView(batch).count
    chunk = bytearray(batch * together)
    for _ in range(batches // together):
        offset = log.log_end_offset
        for number in range(together):
            set_base_offset_and_epoch(chunk, number * len(batch), offset + number * count, 0)
        log.append_as_follower(chunk, 0)
    return len(batch) * (batches // together) * together


def read_limit(path: str) -> int:
    fd = os.open(path, os.O_RDONLY)
    size, position = os.fstat(fd).st_size, 0
    while position < size:
        position += len(os.pread(fd, READ_BYTES, position))
    os.close(fd)
    return size


def read_all(log: PartitionLog, with_bytes: bool) -> tuple[int, int]:
    """(bytes, reads)"""
    offset, total, reads = log.log_start_offset, 0, 0
    active_batch = log.segments.first.find(0)
    assert active_batch is not None
    per_read = READ_BYTES // active_batch.size
    count = active_batch.last_offset + 1
    while offset < log.log_end_offset:
        info = log.read(offset, READ_BYTES, Isolation.HIGH_WATERMARK)
        assert info.records is not None
        total += len(info.records.read()) if with_bytes else info.records.length
        offset = min(log.log_end_offset, offset + per_read * count)
        reads += 1
    return total, reads


async def measure(folder: Path, batch_bytes: int, total_mb: int, rounds: int) -> dict[str, float]:
    plain, idempotent = make_batch(batch_bytes), make_batch(batch_bytes, producer_id=7)
    batches = int(total_mb * MB / len(plain))
    best: dict[str, float] = {}

    def note(name: str, value: float) -> None:
        best[name] = max(best.get(name, 0.0), value)

    for _ in range(rounds):
        note("write limit", timed(lambda: write_limit(folder, plain, batches)) / MB)
        note("crc limit", timed(lambda: crc_limit(plain, batches)) / MB)
        log = await new_log(folder / "bench-0")
        note("append", timed(lambda log=log: append(log, plain, batches)) / MB)  # type: ignore[misc]
        log.update_high_watermark(log.log_end_offset)
        note("read limit", timed(lambda log=log: read_limit(log.segments.first.file.path)) / MB)  # type: ignore[misc]
        note("read", timed(lambda log=log: read_all(log, True)[0]) / MB)  # type: ignore[misc]
        note("read, ranges only (reads/s)", timed(lambda log=log: read_all(log, False)[1]))  # type: ignore[misc]
        await log.close()
        log = await new_log(folder / "bench-1")
        preparation_s = idempotent_preparation(idempotent, batches)
        start = time.perf_counter()
        done = append_idempotent(log, idempotent, batches)
        note("append, idempotent", done / (time.perf_counter() - start - preparation_s) / MB)
        await log.close()
        log = await new_log(folder / "bench-2")
        note("append, follower", timed(lambda log=log: append_follower(log, plain, batches)) / MB)  # type: ignore[misc]
        await log.close()
    return best


def main() -> int:
    parser = argparse.ArgumentParser(description="append and read of a partition log beside the machine's own limit")
    parser.add_argument("--batch-bytes", type=int, default=16384)
    parser.add_argument("--total-mb", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where to write; a temporary folder unless given")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="ottla-bench-", dir=arguments.folder))
    try:
        rows = asyncio.run(measure(folder, arguments.batch_bytes, arguments.total_mb, arguments.rounds))
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
            print(f"{name:32} {value:12,.0f}{'' if 'reads/s' in name else ' MB/s'}")
        for name, value in ratios.items():
            print(f"{name:32} {value:12.2f}")
    return 0 if ratios["append / write limit"] >= 0.5 else 1


if __name__ == "__main__":
    sys.exit(main())
