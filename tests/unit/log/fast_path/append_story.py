"""A story of produced batches, told by a seed: what became of each, and what the log and a follower's log look like at the end.

Whether batches take the fast path into the log or the general one, through either variant of the kernels, the story must end
the same. Run as a program, it prints what became of the stories with the seeds from 0 up to its argument, as JSON.
"""

import hashlib
import json
import random
import sys
from typing import Any

from tests.support.logs.batches import T0, make_batch
from tests.support.logs.partition_logs import FOLDER, SMALL, LogOnDisk

from ottla.config.topic import LogConfig
from ottla.errors import KafkaError
from ottla.log.producers.append_checks import AppendOrigin, VerificationState
from ottla.log.read import Isolation
from ottla.records.checksum import crc32c
from ottla.records.compression import Codec
from ottla.records.control import build_end_marker

CONFIGS = [
    SMALL,
    LogConfig(segment_bytes=100_000, index_interval_bytes=300),
    LogConfig(segment_bytes=3000, index_interval_bytes=0, segment_ms=500),
    LogConfig(max_message_bytes=300, flush_messages=10),
    LogConfig(cleanup_policy=("compact",), segment_bytes=5000),
    LogConfig(message_timestamp_before_max_ms=1000, message_timestamp_after_max_ms=1000),
    LogConfig(message_timestamp_type="LogAppendTime"),
    LogConfig(compression_type="gzip"),
    LogConfig(compression_type="uncompressed", cleanup_policy=("compact",)),
]
STEPS = 80
LOOKED_AT_MAX = 500
FIRST_TRANSACTIONAL_ID = 10


class Story:
    """One log, a few producers, and chance."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.env = LogOnDisk(CONFIGS[seed % len(CONFIGS)])
        self.follower = LogOnDisk(CONFIGS[seed % len(CONFIGS)])
        self.epoch = 0
        self.sequences: dict[int, int] = {}
        self.transactions: dict[int, tuple[int, int]] = {}
        """The epoch and next sequence of producers that have their transactions confirmed."""
        self.outcomes: list[Any] = []
        self.followed: list[Any] = []

    def tell(self) -> dict[str, Any]:
        for _ in range(STEPS):
            self.step()
        self.replicate(1 << 20)
        outcomes = {"outcomes": self.outcomes, "followed": self.followed}
        return outcomes | {"leader": facts_of(self.env), "follower": facts_of(self.follower)}

    def replicate(self, max_bytes: int) -> None:
        """Let the follower append what it lacks; the last batch may be cut."""
        log, leader = self.follower.log, self.env.log
        if log.log_end_offset < leader.log_end_offset:
            found = leader.read(log.log_end_offset, max_bytes, Isolation.LOG_END, True)
            assert found.records is not None
            self.followed.append(list(log.append_as_follower(found.records.read(), self.epoch)))

    def step(self) -> None:
        chance = self.chance
        passed_ms = chance.choice([0, 1, 40])
        self.env.clock.advance(passed_ms)
        self.follower.clock.advance(passed_ms)
        if chance.random() < 0.3:
            self.replicate(chance.choice([50, 300, 1000, 1 << 20]))
        if chance.random() < 0.05:
            self.epoch += 1
        if chance.random() < 0.3:
            self.go_on_with_transaction(FIRST_TRANSACTIONAL_ID + chance.randrange(2))
            return
        batch = self.batch()
        if chance.random() < 0.06:
            batch[chance.randrange(len(batch))] ^= 1 << chance.randrange(8)
            if chance.random() < 0.6:
                batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
        origin = AppendOrigin.COORDINATOR if chance.random() < 0.1 else AppendOrigin.CLIENT
        data = memoryview(batch) if chance.random() < 0.5 else batch
        self.append(data, origin, request_version=chance.choice([3, 7, 13]))

    def append(self, data: bytearray | memoryview, origin: AppendOrigin, **more: Any) -> bool:
        """Whether it was taken."""
        try:
            info = self.env.log.append_as_leader(data, self.epoch, origin, **more)
        except KafkaError as refused:
            self.outcomes.append([int(refused.code), str(refused)])
            return False
        self.outcomes.append(list(info))
        return True

    def go_on_with_transaction(self, producer_id: int) -> None:
        """A batch that the coordinator has confirmed, or a marker: both as they should be nearly always."""
        chance, log = self.chance, self.env.log
        epoch, sequence = self.transactions.get(producer_id, (0, 0))
        if chance.random() < 0.5:
            values = [bytes(chance.randrange(20)) for _ in range(chance.randrange(1, 3))]
            sent = max(0, sequence + chance.choice([0] * 12 + [-1, 1]))
            batch = make_batch(
                *values, timestamp=log.clock.now_ms(), key=b"key", producer=(producer_id, epoch, sent), transactional=True
            )
            try:
                proof = log.producers.begin_verification(producer_id, sent, epoch, chance.random() < 0.5, 0)
            except KafkaError as refused:
                self.outcomes.append([int(refused.code), str(refused)])
                return
            if chance.random() < 0.1:
                proof = VerificationState(0, sent, epoch, True)
            if self.append(batch, AppendOrigin.CLIENT, verified_by=proof):
                self.transactions[producer_id] = epoch, sent + len(values)
        else:
            self.end_transaction(producer_id, epoch, sequence)
        if chance.random() < 0.5:
            log.increment_high_watermark(log.log_end_offset)

    def end_transaction(self, producer_id: int, epoch: int, sequence: int) -> None:
        chance, log = self.chance, self.env.log
        version = chance.choice([0, 2])
        if chance.random() < 0.9:
            epoch, sequence = (epoch + 1, 0) if version == 2 else (epoch, sequence)
        else:
            epoch = max(0, epoch + chance.choice([-1, 0]))
        is_commit, coordinator_epoch, now_ms = chance.random() < 0.8, chance.choice([1] * 10 + [0, 2]), log.clock.now_ms()
        marker = build_end_marker(
            is_commit=is_commit,
            producer_id=producer_id,
            producer_epoch=epoch,
            coordinator_epoch=coordinator_epoch,
            timestamp_ms=now_ms,
        )
        offset = -1
        if is_commit:
            offset = log.append_marker(marker, producer_id, epoch, coordinator_epoch, version, self.epoch, now_ms)
        if offset >= 0:
            self.outcomes.append([offset, offset, -1, log.log_start_offset, False, False, len(marker)])
        if offset >= 0 or self.append(marker, AppendOrigin.COORDINATOR, transaction_version=version):
            self.transactions[producer_id] = epoch, sequence

    def batch(self) -> bytearray:
        chance = self.chance
        values = [bytes(chance.randrange(60)) for _ in range(chance.randrange(1, 5))]
        producer = None
        if chance.random() < 0.8:
            producer_id = chance.randrange(3)
            sequence = self.sequences.get(producer_id, 0)
            if chance.random() < 0.1:
                sequence = max(0, sequence + chance.choice([-2, -1, 1]))
            else:
                self.sequences[producer_id] = sequence + len(values)
            producer = (producer_id, chance.choice([0] * 30 + [1]), sequence)
        return make_batch(
            *values,
            timestamp=self.env.clock.now_ms() + chance.choice([0, 0, 0, 0, 5, -5, -5000, 5000, -T0 - 1]),
            key=chance.choice([b"key", b"key", None]),
            codec=chance.choice([Codec.NONE] * 5 + [Codec.GZIP, Codec.ZSTD]),
            producer=producer,
            transactional=producer is not None and chance.random() < 0.1,
        )


def facts_of(env: LogOnDisk) -> dict[str, Any]:
    """What a log looks like; it is closed then."""
    log, segment = env.log, env.log.segments.active
    looked_at = min(log.log_end_offset, segment.base_offset + LOOKED_AT_MAX)  # a damaged delta makes it billions
    facts = {
        "end": log.log_end_offset,
        "epochs": log.epochs.entries,
        "producers": {str(each): repr(entry) for each, entry in log.producers.producers.items()},
        "producers end": log.producers.map_end_offset,
        "transactions": [log.producers.first_undecided_offset, log.producers.first_unstable_offset],
        "verifications": sorted(log.producers._verifications),
        "largest timestamp": [segment.max_timestamp, segment.max_timestamp_offset],
        "first timestamp": segment.first_timestamp,
        "found": [repr(segment.find(offset)) for offset in range(segment.base_offset, looked_at + 1)],
    }
    env.close()
    disk = env.disk
    contents = {name: disk.read_file(f"{FOLDER}/{name}") for name in sorted(disk.list_directory(FOLDER))}
    facts["files"] = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    return facts


def tell(seed: int) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(json.dumps(Story(seed).tell()))
    return facts


if __name__ == "__main__":
    print(json.dumps([tell(seed) for seed in range(int(sys.argv[1]))]))
