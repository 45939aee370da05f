"""Logs that Ottla writes for Apache Kafka to read: one folder per script, and the expected content of each.

They are written with `PartitionLog` and `Compactor`, on the real disk, with a manual clock. The content is the same in each
run.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from ottla.config.topic import LogConfig
from ottla.env.real import RealDisk
from ottla.log.compaction.compactor import Compactor
from ottla.log.partition_log import PartitionLog
from ottla.log.producers.append_checks import AppendOrigin
from ottla.log.recovery.log_loader import load_log
from ottla.records.builder import build_batch
from ottla.records.compression import Codec
from ottla.records.control import build_end_marker
from ottla.records.record import Record
from ottla.sim.world import InPlaceHelpers, ManualClock

T0 = 1_700_000_000_000
HEADERS: tuple[tuple[tuple[str, bytes | None], ...], ...] = (
    (),
    (("trace", b"1"), ("nothing", None)),
    (("ключ", b""), ("a", b"b")),
)


@dataclass
class LogWriter:
    """Appends to a log as its leader, and remembers every record with its offset."""

    log: PartitionLog
    clock: ManualClock
    leader_epoch: int = 0
    random: Random = field(default_factory=lambda: Random(7))
    sequences: dict[int, int] = field(default_factory=dict)
    sent: dict[int, Record] = field(default_factory=dict)
    numbers: int = 0
    large_value_bytes: int = 3000

    def send(
        self, count: int, *, codec: Codec = Codec.NONE, keys: int = 20, producer_id: int = -1, transactional: bool = False
    ) -> None:
        """Append one batch of `count` records; some without key or value, some with headers, some with earlier timestamps."""
        records = [self._record(index, keys) for index in range(count)]
        sequence = -1
        if producer_id >= 0:
            sequence = self.sequences.get(producer_id, 0)
            self.sequences[producer_id] = sequence + count
        batch = build_batch(
            records,
            codec=codec,
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=sequence,
            transactional=transactional,
        )
        info = self.log.append_as_leader(batch, self.leader_epoch)
        assert not info.is_duplicate
        for record in records:
            timestamp = record.timestamp if info.append_time_ms < 0 else info.append_time_ms
            offset = info.first_offset + record.offset
            self.sent[offset] = Record(offset, timestamp, record.key, record.value, record.headers)
        self.commit_all()

    def _record(self, index: int, keys: int) -> Record:
        self.clock.advance(3)
        number = self.numbers
        self.numbers += 1
        key = None if keys == 0 and number % 7 == 0 else b"key-%d" % (number % (keys or 20))
        value = None if number % 13 == 5 else b"value %d " % number * self.random.randint(0, 9)
        if number % 97 == 50:
            value = self.random.randbytes(self.large_value_bytes)
        back_ms = 40 if number % 31 == 0 else 0
        return Record(index, self.clock.now_ms() - back_ms, key, value, HEADERS[number % 3])

    def end(self, producer_id: int, *, is_commit: bool) -> None:
        """Append the end marker of a transaction."""
        self.clock.advance(1)
        marker = build_end_marker(
            is_commit=is_commit,
            producer_id=producer_id,
            producer_epoch=0,
            coordinator_epoch=0,
            timestamp_ms=self.clock.now_ms(),
        )
        self.log.append_as_leader(marker, self.leader_epoch, AppendOrigin.COORDINATOR)
        self.commit_all()

    def commit_all(self) -> None:
        """Raise the high watermark to the log end offset."""
        self.log.update_high_watermark(self.log.log_end_offset)

    async def compact(self) -> int:
        """Compact until no log is due; returns the number of passes."""
        disk = self.log.disk
        compactor = Compactor(disk, self.clock, InPlaceHelpers(disk, self.clock))
        passes = 0
        while await compactor.run_once({self.log.partition: self.log}) is not None:
            passes += 1
        return passes


Script = Callable[[LogWriter], Awaitable[None]]
SMALL = LogConfig(segment_bytes=8192, index_interval_bytes=512, file_delete_delay_ms=0)
COMPACTED = replace(SMALL, cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.01)


def fill(codec: Codec) -> Script:
    async def script(writer: LogWriter) -> None:
        for number in range(60):
            writer.send(writer.random.randint(1, 12), codec=codec, keys=0, producer_id=number % 3 - 1)

    return script


async def truncate(writer: LogWriter) -> None:
    """Truncate in an older segment, in the middle of a batch, and append in a new leader epoch; twice."""
    for epoch, share in ((1, 0.6), (2, 0.8)):
        await fill(Codec.NONE)(writer)
        cut = int(writer.log.log_end_offset * share)
        await writer.log.truncate_to(cut)
        writer.sent = {offset: record for offset, record in writer.sent.items() if offset < writer.log.log_end_offset}
        writer.sequences = {key: entry.last_sequence + 1 for key, entry in writer.log.producers.producers.items()}
        writer.leader_epoch = epoch
        for _ in range(10):
            writer.send(5)


async def transact(writer: LogWriter) -> None:
    """Overlapping transactions, every third aborted, the last one open, plain records in between."""
    for number in range(30):
        for producer_id in (100, 101, 102):
            writer.send(3, producer_id=producer_id, transactional=True)
        writer.send(1)
        for producer_id in (100, 101, 102) if number % 2 else (102, 101, 100):
            writer.end(producer_id, is_commit=(number + producer_id) % 3 != 0)
    writer.send(2, producer_id=101, transactional=True)


async def compact(writer: LogWriter) -> None:
    """Two rounds of many updates of few keys; the second removes the tombstones of the first."""
    for _ in range(2):
        for number in range(150):
            writer.send(4, codec=Codec(number % 5), keys=15)
        assert await writer.compact() >= 1
        writer.clock.advance(2 * 86_400_000)


async def compact_transactions(writer: LogWriter) -> None:
    for number in range(80):
        producer_id = 100 + number % 2
        writer.send(4, keys=15, producer_id=producer_id, transactional=True)
        writer.end(producer_id, is_commit=number % 4 != 1)
    assert await writer.compact() >= 1


async def delete(writer: LogWriter) -> None:
    await fill(Codec.NONE)(writer)
    second = list(writer.log.segments)[2]
    writer.log.delete_records(second.base_offset + 7)
    await writer.log.delete_segments(list(writer.log.segments)[:2])
    await writer.log.delete_due_files()


SCRIPTS: dict[str, tuple[LogConfig, Script]] = {
    **{f"codec-{codec.name.lower()}": (SMALL, fill(codec)) for codec in Codec},
    "truncated": (SMALL, truncate),
    "transactions": (SMALL, transact),
    "compacted": (COMPACTED, compact),
    "compacted-transactions": (COMPACTED, compact_transactions),
    "append-time": (replace(SMALL, message_timestamp_type="LogAppendTime"), fill(Codec.LZ4)),
    "deleted": (SMALL, delete),
}


async def write_log(name: str, directory: Path) -> LogWriter:
    """Write the log called `name` to `directory`/name-0. The caller closes the log."""
    config, script = SCRIPTS[name]
    clock = ManualClock(T0)
    log, _ = await load_log(RealDisk(), clock, str(directory / f"{name}-0"), config)
    writer = LogWriter(log, clock)
    await script(writer)
    return writer
