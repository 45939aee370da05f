"""Every kind of file in a log directory damaged in every way: a start recovers, or refuses with an error that names the file.

A directory with three partitions is written once, in four states: after a clean shutdown, killed, and killed in the middle of a
compaction, before and after it was decided. Then each file in turn is cut, flipped, zeroed, emptied, deleted, grown, or given
the content of another file, and the directory is opened. What must hold:

- Only typed errors, which name the file or its folder, in bounded time. The other partitions are untouched.
- Every record read afterwards was written, at the offset it was written at, as far as the format can tell: a batch's CRC does
  not cover its base offset and its leader epoch, so damage there is only held to typed errors and bounded time.
- Damage beside the records (indexes, snapshots, epochs, checkpoints, markers) costs no record.
- The log still works: it can be appended to, closed and opened again.

What a clean start does not do, as Apache's does not: look at every batch of segments that were closed long ago. A flipped bit
in one is handed out as it is, in a file range; the CRC is there for the consumer. Nor does the transaction index have a
checksum: damaged, it may name the wrong transactions.
"""

import time
from collections import Counter
from functools import cache
from random import Random
from typing import NamedTuple

import pytest
from tests.support.logs.batches import T0, make_batch
from tests.support.logs.log_directories import NodeStorage
from tests.support.logs.partition_logs import run

from ottla.config.topic import LogConfig
from ottla.env import OpenMode
from ottla.errors import CorruptRecords, KafkaError, LogDirectoryFailed, OttlaError
from ottla.ids import TopicPartition
from ottla.log.compaction.compactor import candidate_of
from ottla.log.partition_log import PartitionLog
from ottla.log.producers.append_checks import AppendOrigin
from ottla.log.read import Isolation
from ottla.records.batch import BatchView, iterate_batches
from ottla.records.compression import Codec
from ottla.records.control import build_end_marker
from ottla.records.layout import HEADER_SIZE, MAGIC
from ottla.records.reader import read_records
from ottla.records.record import Record
from ottla.sim.disk import MemoryDisk, copy_tree

PLAIN, TXN, KEYED = (TopicPartition(topic, 0) for topic in ("plain", "txn", "keyed"))
CONFIG = LogConfig(
    segment_bytes=900, index_interval_bytes=120, file_delete_delay_ms=60_000, cleanup_policy=("compact",), delete_retention_ms=0
)
STATES = ("closed", "killed", "compaction undecided", "compaction decided")
KINDS = ("cut", "flip", "zeros inside", "all zeros", "empty", "deleted", "grown", "another file")
SECONDS_MAX = 5.0
REPEATS = {"cut": 3, "flip": 5, "zeros inside": 2, "another file": 2}
"""How often a file is damaged by chance, in `make test-all`; once in `make test`."""
NOT_CHECKED = (*range(8), *range(12, 16))
"""The bytes of a batch that its CRC does not cover: base offset and leader epoch."""
COSTS_NO_RECORD = (
    ".index",
    ".timeindex",
    ".snapshot",
    ".deleted",
    "leader-epoch-checkpoint",
    "cleaner-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    ".kafka_cleanshutdown",
)

Records = dict[int, Record]


class Expected(NamedTuple):
    """The records of a partition: all that were ever written, and the offsets that a reader gets of the undamaged log."""

    ever: Records
    offsets: set[int]


# -- the directory


def write_partitions(node: NodeStorage) -> dict[TopicPartition, Records]:
    """Write three partitions; half of the records are flushed. Returns the records before some are deleted or compacted."""
    node.open()
    logs = {p: node.directories.find(node.create(p.topic)) for p in (PLAIN, TXN, KEYED)}
    plain, txn, keyed = (logs[p] for p in (PLAIN, TXN, KEYED))
    assert plain is not None
    assert txn is not None
    assert keyed is not None
    codecs = tuple(Codec)
    for number in range(24):
        time_ms = T0 + 100 * number
        values = [b"%d-%d" % (number, index) for index in range(3)]
        batch = make_batch(*values, key=b"%d" % number, timestamp=time_ms, codec=codecs[number % 5])
        plain.append_as_leader(batch, leader_epoch=number // 8)
        producer = 20 + number % 3
        epoch_and_sequence = (0, 2 * (number // 3))
        values = [b"t%d" % number, b"u%d" % number]
        batch = make_batch(*values, key=b"k", timestamp=time_ms, producer=(producer, *epoch_and_sequence), transactional=True)
        txn.append_as_leader(batch, leader_epoch=1)
        if number % 4 == 3:
            marker = build_end_marker(
                is_commit=number % 8 == 3, producer_id=producer, producer_epoch=0, coordinator_epoch=0, timestamp_ms=time_ms
            )
            txn.append_as_leader(marker, 1, AppendOrigin.COORDINATOR)
        batch = make_batch(b"v%d" % number, key=b"key %d" % (number % 5), timestamp=time_ms, producer=(9, 0, number))
        keyed.append_as_leader(batch, leader_epoch=2)
        if number == 11:
            for log in (plain, txn, keyed):
                run(log.flush())
            run(node.upkeep.write_recovery_points())
    for log in (plain, txn, keyed):
        log.update_high_watermark(log.log_end_offset)
    run(node.upkeep.write_high_watermarks())
    ever = {partition: records_of(log) for partition, log in node.directories.logs.items()}
    plain.delete_records(4)
    run(node.upkeep.write_log_starts())
    return ever


@cache
def directory(state: str) -> tuple[MemoryDisk, dict[TopicPartition, Expected]]:
    """The directory in a state, and what its partitions have."""
    node = NodeStorage(("/a",), compaction=True, topic_config=CONFIG)
    ever = write_partitions(node)
    if state.startswith("compaction"):
        compact_until(node, ".cleaned" if state.endswith("undecided") else ".swap")
    if state == "closed":
        node.close()
    image = MemoryDisk(clock=node.clock)
    copy_tree(node.disk.crash(power_loss=False), "/a", image, "/a")
    logs = opened(image).directories.logs
    return image, {partition: Expected(ever[partition], set(records_of(log))) for partition, log in logs.items()}


def compact_until(node: NodeStorage, suffix: str) -> None:
    """Kill a compaction when there is a file with `suffix`."""
    disk = node.disk
    log = node.directories.find(KEYED)
    assert log is not None
    compactor = node.directories.compactor
    assert compactor is not None
    before = disk.crash_before

    async def pause() -> None:
        if any(name.endswith(suffix) for name in disk.names.find(log.folder).entries):
            before(2 if suffix == ".cleaned" else 0)

    disk.pause = pause
    with pytest.raises(LogDirectoryFailed):
        run(compactor.compact(candidate_of(log, None, node.clock.now_ms())))
    disk.pause = None


def opened(image: MemoryDisk) -> NodeStorage:
    """A node on a copy of the directory."""
    node = NodeStorage(("/a",), compaction=True, topic_config=CONFIG)
    node.disk = MemoryDisk(clock=node.clock)
    copy_tree(image, "/a", node.disk, "/a")
    node.open()
    return node


def files_of(image: MemoryDisk) -> list[str]:
    return [path for path, _ in image.names.files() if not path.endswith(".lock")]


# -- reading, as a consumer does


def records_of(log: PartitionLog, isolation: Isolation = Isolation.LOG_END, damaged: Counter[str] | None = None) -> Records:
    """All records a consumer gets; with `damaged`, up to the first batch that a consumer would refuse, which is counted."""
    found: Records = {}
    offset = log.log_start_offset
    while offset <= log.log_end_offset:
        info = log.read(offset, 2000, isolation)
        data = b"" if info.records is None else info.records.read()
        position, before = 0, offset
        while len(data) - position >= HEADER_SIZE:
            view = BatchView(data, position)
            if position + view.size > len(data):
                break
            try:
                view.check()
                found.update((record.offset, record) for record in read_records(view) if record.offset >= before)
            except CorruptRecords:
                if damaged is None:
                    raise
                damaged["refused by the consumer"] += 1
                return found
            position += view.size
            offset = max(offset, view.next_offset)
        if offset == before:
            return found
    return found


# -- damage


def damage(disk: MemoryDisk, path: str, kind: str, random: Random) -> bool:
    """Damage the file. Returns False if that changed nothing."""
    data = bytearray(disk.read_file(path))
    original = bytes(data)
    place = random.randrange(len(data)) if data else 0
    if kind == "deleted":
        run(disk.remove(path))
        return True
    if kind == "cut":
        del data[place:]
    elif kind == "flip" and data:
        data[place] ^= 1 << random.randrange(8)
    elif kind == "zeros inside":
        data[place : place + 40] = bytes(len(data[place : place + 40]))
    elif kind == "all zeros":
        data = bytearray(len(data))
    elif kind == "empty":
        data.clear()
    elif kind == "grown":
        data += random.choice((bytes(random.randrange(1, 5000)), b"\xff" * random.randrange(1, 200)))
    elif kind == "another file":
        data = bytearray(disk.read_file(random.choice(files_of(disk))))
    if data == original:
        return False
    file = disk.open(path, OpenMode.CREATE)
    file.truncate(0)
    file.append(bytes(data))
    file.close()
    return True


def is_checked(image: MemoryDisk, disk: MemoryDisk, path: str, kind: str) -> bool:
    """Whether a wrong record can be detected.

    It cannot where base offsets or epochs were changed, which no CRC covers, nor where the file has whole batches of another
    file: nothing in a batch says which partition it belongs to.
    """
    if ".log" not in path or path.endswith(".deleted") or not disk.exists(path):
        return True
    old, new = image.read_file(path), disk.read_file(path)
    if kind == "another file":
        return len(new) < HEADER_SIZE or new[16] != MAGIC
    starts = [view.position for view in iterate_batches(old)]
    return all(old[at + byte : at + byte + 1] == new[at + byte : at + byte + 1] or at + byte >= len(new)
               for at in starts for byte in NOT_CHECKED)  # fmt: skip


# -- the test


def check(image: MemoryDisk, written: dict[TopicPartition, Expected], path: str, kind: str, random: Random) -> str:
    node = NodeStorage(("/a",), compaction=True, topic_config=CONFIG)
    node.disk = MemoryDisk(clock=node.clock)
    copy_tree(image, "/a", node.disk, "/a")
    if not damage(node.disk, path, kind, random):
        return "no change"
    checked = is_checked(image, node.disk, path, kind)
    try:
        node.open()
    except OttlaError as refused:
        assert_names(refused, path)
        return "start refused"
    outcomes = [check_partition(node, partition, written[partition], path, checked) for partition in written]
    node.close()
    try:
        node.open()
    except OttlaError as refused:
        assert_names(refused, path)
    return outcomes[[f"{p.topic}-0" in path for p in written].index(True)] if "-0/" in path else outcomes[0]


def check_partition(node: NodeStorage, partition: TopicPartition, expected: Expected, path: str, checked: bool) -> str:
    is_own = f"/{partition.topic}-0/" in path
    costs_no_record = path.endswith(COSTS_NO_RECORD) or not (is_own or path.endswith("log-start-offset-checkpoint"))
    try:
        log = node.directories.find(partition)
    except KafkaError as refused:
        assert_names(refused, path, is_own)
        return "partition refused"
    assert log is not None
    seen: Counter[str] = Counter()
    try:
        found = records_of(log, damaged=seen)
        records_of(log, Isolation.COMMITTED, damaged=seen)
        log.aborted_transactions(log.log_start_offset, log.log_end_offset)
        times = [look_up(log, expected, offset, exact=costs_no_record) for offset in (5, 20, 40)]
        log.max_timestamp_offset()
        assert log.log_start_offset <= log.high_watermark <= log.log_end_offset
        end = log.log_end_offset
        assert log.append_as_leader(make_batch(b"goes on", key=b"k", timestamp=T0), 9).first_offset == end
    except OttlaError as refused:
        assert_names(refused, path, is_own)
        return "read refused"
    assert all(times), f"wrong answers for times: {times}"
    wrong = [record for offset, record in found.items() if checked and expected.ever.get(offset) != record]
    assert not wrong, f"records that were never written: {wrong[:3]}"
    lost = expected.offsets - found.keys()
    assert not (lost and costs_no_record), f"records lost: {sorted(lost)[:10]}"
    return "went on with less" if lost or seen else "went on"


def look_up(log: PartitionLog, expected: Expected, offset: int, exact: bool) -> bool:
    """Look up the time of the record at `offset`; False if the answer is wrong."""
    time_ms = expected.ever[min(expected.ever, key=lambda each: abs(each - offset))].timestamp
    found = log.offset_for_time(time_ms)
    first = next((o for o in sorted(expected.offsets) if expected.ever[o].timestamp >= time_ms), None)
    return not exact or (found and found.offset) == first


def assert_names(error: OttlaError, path: str, is_own: bool = True) -> None:
    """Check that the error names the damaged file, or at least its folder, and says what to do."""
    text = str(error)
    folder, _, name = path.rpartition("/")
    assert is_own, f"damage to {path} must not matter here: {text}"
    assert folder in text or name in text, f"{text!r} does not name {path}"
    assert len(text.split()) > 8


@pytest.mark.parametrize("state", STATES)
def test_the_directory_has_every_kind_of_file(state: str) -> None:
    image, written = directory(state)
    names = [path.rpartition("/")[2] for path in files_of(image)]
    endings = {name[20:] if name[:20].isdigit() else name for name in names}
    assert {".log", ".index", ".timeindex", ".snapshot", ".txnindex", "leader-epoch-checkpoint", "partition.metadata",
            "meta.properties", "recovery-point-offset-checkpoint", "replication-offset-checkpoint",
            "log-start-offset-checkpoint"} <= endings  # fmt: skip
    assert (".kafka_cleanshutdown" in endings) == (state == "closed")
    assert (".log.cleaned" in endings) == (state == "compaction undecided")
    assert (".log.swap" in endings) == (state == "compaction decided")
    assert sum(name.endswith(".log") for name in names) > 8
    assert len(written[PLAIN].offsets) == 68


@pytest.mark.slow
@pytest.mark.parametrize("kind", REPEATS)
@pytest.mark.parametrize("state", STATES)
def test_every_file_damaged_more_often(state: str, kind: str) -> None:
    damage_every_file(state, kind, range(1, REPEATS[kind]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("state", STATES)
def test_every_file_damaged(state: str, kind: str) -> None:
    damage_every_file(state, kind, range(1))


def damage_every_file(state: str, kind: str, numbers: range) -> None:
    image, written = directory(state)
    outcomes: Counter[str] = Counter()
    slowest = 0.0
    for path in files_of(image):
        for number in numbers:
            random = Random(f"{state} {kind} {path} {number}")
            started = time.process_time()
            try:
                outcomes[check(image, written, path, kind, random)] += 1
            except Exception as error:
                error.add_note(f"{kind}: {path}, try {number}, of the directory that was {state}")
                raise
            slowest = max(slowest, time.process_time() - started)
    print(f"{state}, {kind}: {dict(outcomes)}, slowest {slowest:.2f} s")
    assert outcomes["went on"]
    assert slowest < SECONDS_MAX
