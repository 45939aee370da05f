"""Random logs for compaction: every kind of batch that a compacted topic may have, as segment files on any disk.

`write_log` writes only `.log` files, as after a crash; recovery builds indexes and producers. They have few keys, so that these
repeat, tombstones, records without a key, headers, all codecs, both timestamp types, idempotent and transactional producers,
commits, aborts, open transactions.
"""

from dataclasses import dataclass, field
from random import Random

from ottla.env import Disk, OpenMode
from ottla.log.partition_log import PartitionLog
from ottla.records.batch import BatchView, iterate_batches
from ottla.records.builder import build_batch
from ottla.records.compression import Codec
from ottla.records.control import build_end_marker
from ottla.records.reader import read_records
from ottla.records.record import Record

T0 = 1_700_000_000_000


@dataclass
class RandomLog:
    """Builds batches one after the other, with their offsets in the log."""

    random: Random
    keys: int = 12
    codecs: tuple[Codec, ...] = tuple(Codec)
    next_offset: int = 0
    now_ms: int = T0
    segments: list[tuple[int, list[bytes]]] = field(default_factory=list)
    sequences: dict[int, int] = field(default_factory=dict)
    in_transaction: set[int] = field(default_factory=set)

    def records(self) -> list[Record]:
        random = self.random
        records = []
        for _ in range(random.randint(1, 5)):
            self.now_ms += random.randint(0, 3)
            number = random.randrange(self.keys)
            key: bytes | None = b"key-%d" % number if number % 3 else b"a key too long to be kept as it is %06d" % number
            if random.random() < 0.04:
                key = None
            value = None if random.random() < 0.25 else b"%d" % self.next_offset + b"v" * random.choice((0, 1, 40))
            headers = (("h", b"1"), ("null", None)) if random.random() < 0.2 else ()
            records.append(Record(self.next_offset, self.now_ms - random.randint(0, 2), key, value, headers))
            self.next_offset += 1
        return records

    def data(self, producer_id: int = -1, transactional: bool = False) -> bytes:
        records = self.records()
        sequence = -1
        if producer_id >= 0:
            sequence = self.sequences.get(producer_id, 0)
            self.sequences[producer_id] = sequence + len(records)
        if transactional:
            self.in_transaction.add(producer_id)
        append_time_ms = self.now_ms if self.random.random() < 0.1 else None
        return bytes(
            build_batch(
                records,
                leader_epoch=self.next_offset // 50,
                codec=self.random.choice(self.codecs),
                append_time_ms=append_time_ms,
                producer_id=producer_id,
                producer_epoch=0 if producer_id >= 0 else -1,
                base_sequence=sequence,
                transactional=transactional,
            )
        )

    def end(self, producer_id: int) -> bytes:
        self.in_transaction.discard(producer_id)
        marker = build_end_marker(
            is_commit=self.random.random() < 0.5,
            coordinator_epoch=0,
            producer_id=producer_id,
            producer_epoch=0,
            base_offset=self.next_offset,
            timestamp_ms=self.now_ms,
            leader_epoch=self.next_offset // 50,
        )
        self.next_offset += 1
        return bytes(marker)

    def batch(self) -> bytes:
        chance = self.random.random()
        if chance < 0.45:
            return self.data()
        if chance < 0.6:
            return self.data(producer_id=100 + self.random.randrange(3))
        producer_id = self.random.randrange(4)
        if self.in_transaction and chance > 0.8:
            return self.end(self.random.choice(sorted(self.in_transaction)))
        if self.random.random() < 0.05:
            return self.end(producer_id)  # of a transaction that had no records here
        return self.data(producer_id, transactional=True)

    def segment(self, batches: int) -> None:
        self.segments.append((self.next_offset, [self.batch() for _ in range(batches)]))


def random_log(random: Random, segments: int = 8, keys: int = 12, codecs: tuple[Codec, ...] = tuple(Codec)) -> RandomLog:
    """A log of `segments` segments; transactions are open only in the last."""
    log = RandomLog(random, keys, codecs)
    for number in range(segments):
        log.segment(random.randint(1, 8))
        if number == segments - 2:
            log.segments[-1][1].extend(log.end(producer_id) for producer_id in sorted(log.in_transaction))
    return log


def write_log(disk: Disk, folder: str, log: RandomLog) -> None:
    """Write the segments of `log` as files in `folder`."""
    disk.make_directory(folder)
    for base_offset, batches in log.segments:
        file = disk.open(f"{folder}/{base_offset:020d}.log", OpenMode.CREATE)
        file.append(*batches)
        file.close()


def batches_of(log: PartitionLog) -> list[BatchView]:
    """Every batch of a log, whole and with the right CRC."""
    found = []
    for segment in log.segments:
        for batch in iterate_batches(segment.file.read(0, segment.size)):
            batch.check()
            found.append(batch)
    return found


def committed_records(log: PartitionLog) -> list[Record]:
    """The records that a read_committed consumer gets, up to the last stable offset."""
    aborted = log.aborted_transactions(0, log.log_end_offset)
    records = []
    for batch in batches_of(log):
        if batch.is_control or batch.base_offset >= log.last_stable_offset:
            continue
        if batch.is_transactional and any(
            txn.producer_id == batch.producer_id and txn.first_offset <= batch.base_offset <= txn.last_offset for txn in aborted
        ):
            continue
        records.extend(read_records(batch))
    return records


def visible_state(log: PartitionLog) -> dict[bytes, bytes]:
    """The last value of every key: what compaction must never change."""
    state: dict[bytes, bytes] = {}
    for record in committed_records(log):
        if record.key is None:
            continue
        if record.value is None:
            state.pop(record.key, None)
        else:
            state[record.key] = record.value
    return state
