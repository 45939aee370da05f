"""The files beside the records that Apache Kafka wrote: indexes, producer snapshots, checkpoints, marks.

Files that can be derived from the records are deleted, rebuilt by Ottla, and compared byte for byte. An index is not always a
function of its log file: when Apache reopens a segment it forgets how many bytes follow the last entry, and it leaves the
active index padded with zeros. The indexes of such segments are checked entry by entry against the log instead.
"""

import asyncio
from pathlib import Path

import pytest
from tests.support.logs.apache_logs import CODEC_TOPICS, TOPICS, LogsFromApache
from tests.support.servers.apache_kafka import ApacheKafka

from ottla.config.topic import LogConfig
from ottla.env.real import RealDisk
from ottla.ids import TopicPartition
from ottla.log.directories.checkpoint import OffsetCheckpoint, parse_epochs
from ottla.log.names import parse_segment_file_name
from ottla.log.producers.producer_snapshot import ProducerSnapshots, decode_snapshot, encode_snapshot
from ottla.log.segments.segment import Segment
from ottla.records.batch import BatchView, iterate_batches

INDEX_INTERVAL_BYTES = 512
CONFIG = LogConfig(index_interval_bytes=INDEX_INTERVAL_BYTES)
WITH_RECORDS = [topic for topic in TOPICS if topic != "empty"]


def segment_of(path: Path) -> Segment:
    return Segment(RealDisk(), str(path.parent), int(path.stem), CONFIG, now_ms=0)


def batches_of(path: Path) -> list[BatchView]:
    return list(iterate_batches(path.read_bytes()))


def was_reopened(path: Path) -> bool:
    return len({batch.leader_epoch for batch in batches_of(path)}) > 1


@pytest.mark.parametrize("topic", WITH_RECORDS)
def test_rebuilt_indexes_are_apaches_byte_for_byte(logs_from_apache: LogsFromApache, topic: str, tmp_path: Path) -> None:
    folder = logs_from_apache.copy(topic, tmp_path)
    compared = entries = 0
    for log in sorted(folder.glob("*.log")):
        if was_reopened(log):
            continue
        offset_index, time_index = log.with_suffix(".index"), log.with_suffix(".timeindex")
        expected = offset_index.read_bytes(), time_index.read_bytes()
        offset_index.unlink()
        time_index.unlink()
        segment = segment_of(log)
        segment.rebuild_indexes()
        segment.close()
        assert (offset_index.read_bytes(), time_index.read_bytes()) == expected, log.name
        compared += 1
        entries += len(expected[0]) // 8
    if topic in CODEC_TOPICS:  # how many segments compaction leaves, and how full, depends on its timing
        assert compared >= 2
        assert entries > 0


@pytest.mark.parametrize("crashed", [False, True])
@pytest.mark.parametrize("topic", WITH_RECORDS)
def test_apaches_index_entries_lead_to_their_batches(
    logs_from_apache: LogsFromApache, topic: str, crashed: bool, tmp_path: Path
) -> None:
    """Also in segments not compared above, and in indexes that a crash left padded with zeros."""
    folder = logs_from_apache.copy(topic, tmp_path, crashed=crashed)
    for log in sorted(folder.glob("*.log")):
        batches = batches_of(log)
        before = log.with_suffix(".index").read_bytes(), log.with_suffix(".timeindex").read_bytes()
        segment = segment_of(log)
        for batch in batches:
            place = segment.find(batch.last_offset)
            assert place is not None
            assert (place.base_offset, place.position, place.size) == (batch.base_offset, batch.position, batch.size)
        if not crashed:
            assert segment.max_timestamp == max((batch.max_timestamp for batch in batches), default=-1)
        segment.abandon()
        assert before == (log.with_suffix(".index").read_bytes(), log.with_suffix(".timeindex").read_bytes())


def test_aborted_transactions_are_those_that_apaches_tool_shows(
    apache_kafka: ApacheKafka, logs_from_apache: LogsFromApache, tmp_path: Path
) -> None:
    found = 0
    for topic in ("transactions", "compacted-transactions"):
        folder = logs_from_apache.copy(topic, tmp_path)
        dump = apache_kafka.dump_log_segments(sorted(folder.glob("*.txnindex")))
        assert dump.complaints == []
        for dumped in dump.files:
            segment = segment_of(Path(dumped.path).with_suffix(".log"))
            assert [tuple(aborted) for aborted in segment.txn_index.all()] == dumped.aborted
            segment.abandon()
            found += len(dumped.aborted)
    assert found > 10


def test_producer_snapshots_are_those_that_apaches_tool_shows(
    apache_kafka: ApacheKafka, logs_from_apache: LogsFromApache
) -> None:
    paths = [path for topic in WITH_RECORDS for path in sorted((logs_from_apache.stopped / f"{topic}-0").glob("*.snapshot"))]
    dump = apache_kafka.dump_log_segments(paths)
    assert dump.complaints == []
    producers = 0
    for path, dumped in zip(paths, dump.files, strict=True):
        data = path.read_bytes()
        entries = decode_snapshot(str(path), data)
        assert encode_snapshot(entries) == data
        assert [
            (entry.producer_id, entry.epoch, entry.coordinator_epoch, entry.transaction_first_offset, entry.last_timestamp_ms)
            for entry in entries
        ] == [
            (each.producer_id, each.producer_epoch, each.coordinator_epoch, each.current_txn_first_offset, each.last_timestamp)
            for each in dumped.producers
        ]
        assert [(entry.last_sequence, entry.last_offset) for entry in entries] == [
            (-1 if each.last_sequence is None else each.last_sequence, -1 if each.last_offset is None else each.last_offset)
            for each in dumped.producers
        ]
        producers += len(entries)
    assert producers > 20


def test_the_last_snapshot_says_what_describe_producers_said(logs_from_apache: LogsFromApache) -> None:
    for topic in WITH_RECORDS:
        folder = logs_from_apache.stopped / f"{topic}-0"
        snapshots = ProducerSnapshots(RealDisk(), str(folder))
        entries = snapshots.read(snapshots.offsets[-1])
        seen = logs_from_apache.seen[topic].producers
        assert {
            entry.producer_id: (
                entry.epoch,
                entry.last_sequence,
                entry.last_timestamp_ms,
                -1 if entry.transaction_first_offset is None else entry.transaction_first_offset,
            )
            for entry in entries
        } == {
            producer_id: (
                state["producer_epoch"],
                state["last_sequence"],
                state["last_timestamp"],
                state["transaction_start"],
            )
            for producer_id, state in seen.items()
        }


def test_offset_checkpoints_are_read_and_written_as_apache_writes_them(
    logs_from_apache: LogsFromApache, tmp_path: Path
) -> None:
    partitions = {TopicPartition(topic, 0) for topic in TOPICS}
    for name in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        offsets = OffsetCheckpoint(RealDisk(), str(logs_from_apache.stopped / name)).read()
        assert partitions <= set(offsets)
        for topic, seen in logs_from_apache.seen.items():
            assert offsets[TopicPartition(topic, 0)] == seen.end
    starts = OffsetCheckpoint(RealDisk(), str(logs_from_apache.stopped / "log-start-offset-checkpoint")).read()
    assert starts == {TopicPartition("deleted", 0): 133}
    cleaned = OffsetCheckpoint(RealDisk(), str(logs_from_apache.stopped / "cleaner-offset-checkpoint"))
    again = OffsetCheckpoint(RealDisk(), str(tmp_path / "again"))
    asyncio.run(again.write(cleaned.read()))
    theirs, ours = Path(cleaned.path).read_text().splitlines(), Path(again.path).read_text().splitlines()
    assert (ours[:2], sorted(ours[2:])) == (theirs[:2], sorted(theirs[2:]))
    assert len(ours) == 5


@pytest.mark.parametrize("topic", WITH_RECORDS)
def test_leader_epochs_are_those_of_the_batches(logs_from_apache: LogsFromApache, topic: str) -> None:
    folder = logs_from_apache.stopped / f"{topic}-0"
    path = folder / "leader-epoch-checkpoint"
    epochs = parse_epochs(str(path), path.read_bytes())
    assert len(epochs) == 2
    for log in folder.glob("*.log"):
        for batch in batches_of(log):
            offset = max(batch.base_offset, logs_from_apache.seen[topic].beginning)
            if offset <= batch.last_offset:  # older epochs are deleted with their records
                assert batch.leader_epoch == max(epoch for epoch, start_offset in epochs if start_offset <= offset)


def test_every_file_name_of_a_partition_folder_is_known(logs_from_apache: LogsFromApache) -> None:
    for topic in TOPICS:
        for path in (logs_from_apache.crashed / f"{topic}-0").iterdir():
            known = parse_segment_file_name(path.name)
            assert known is not None or path.name in ("leader-epoch-checkpoint", "partition.metadata"), path.name
