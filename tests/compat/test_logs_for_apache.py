"""Logs that Ottla wrote, checked by Apache Kafka's own tools and classes: no complaints, and the same records.

Each check is one Java process over all logs.
"""

import asyncio
import json
from collections import defaultdict
from pathlib import Path

import pytest
from tests.support.logs.dump_log import Dump
from tests.support.logs.log_reading import consume
from tests.support.logs.ottla_logs import SCRIPTS, write_log
from tests.support.servers.apache_kafka import ApacheKafka

from ottla.log.partition_log import PartitionLog
from ottla.log.read import Isolation
from ottla.records.record import Record

COMPACTED = [name for name in SCRIPTS if name.startswith("compacted")]
Row = tuple[int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]


class WrittenLog:
    """One log on disk, and what Ottla says is in it."""

    def __init__(self, folder: Path, log: PartitionLog, sent: dict[int, Record]) -> None:
        self.folder = folder
        self.sent = sent
        self.read = [record for _, record in consume(log, Isolation.LOG_END)]
        self.log_start_offset, self.log_end_offset = log.log_start_offset, log.log_end_offset
        self.aborted = log.aborted_transactions(log.log_start_offset, log.log_end_offset)
        self.producers = dict(log.producers.producers)

    def files(self, *suffixes: str) -> list[Path]:
        return [path for suffix in suffixes for path in sorted(self.folder.glob(f"*{suffix}"))]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, WrittenLog]:
    directory = tmp_path_factory.mktemp("for-apache")

    async def write(name: str) -> WrittenLog:
        writer = await write_log(name, directory)
        known = WrittenLog(directory / f"{name}-0", writer.log, writer.sent)
        await writer.log.close()
        return known

    return {name: asyncio.run(write(name)) for name in SCRIPTS}


@pytest.fixture(scope="module")
def dump(apache_kafka: ApacheKafka, written: dict[str, WrittenLog]) -> Dump:
    """DumpLogSegments over every file of every log. It also checks indexes against their logs."""
    suffixes = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
    return apache_kafka.dump_log_segments([path for log in written.values() for path in log.files(*suffixes)])


def row(record: Record) -> Row:
    return record.offset, record.timestamp, record.key, record.value, record.headers


def test_logs_hold_every_case_that_is_tested(written: dict[str, WrittenLog]) -> None:
    for name, log in written.items():
        assert len(log.files(".log")) >= 3, name
        if name not in COMPACTED and name != "deleted":
            assert [row(record) for record in log.read if record.offset in log.sent] == [row(r) for r in log.sent.values()]
    assert written["deleted"].log_start_offset > 0
    assert len(written["transactions"].aborted) == 30
    assert any(record.value is None for record in written["compacted"].read)
    for name in COMPACTED:
        assert len(written[name].read) < len(written[name].sent) / 2


def test_dump_log_segments_has_no_complaints(dump: Dump) -> None:
    assert dump.complaints == []


def test_only_compacted_logs_have_gaps_between_offsets(dump: Dump, written: dict[str, WrittenLog]) -> None:
    compacted = {str(path) for name in COMPACTED for path in written[name].files(".log")}
    assert dump.gaps.keys() <= compacted
    assert dump.gaps, "compaction left no gap at all"


def test_apaches_classes_read_the_same_records(apache_kafka: ApacheKafka, written: dict[str, WrittenLog]) -> None:
    output = apache_kafka.run_java("ReadLogs.java", *(log.folder for log in written.values()))
    theirs: dict[str, list[Row]] = defaultdict(list)
    for line in output.stdout.splitlines():
        seen = json.loads(line)
        if seen["control"]:
            continue
        key, value = (None if seen[part] is None else bytes.fromhex(seen[part]) for part in ("key", "value"))
        headers = tuple((name, None if data is None else bytes.fromhex(data)) for name, data in seen["headers"])
        theirs[seen["folder"]].append((seen["offset"], seen["timestamp"], key, value, headers))
    for name, log in written.items():
        kept = [each for each in theirs[str(log.folder)] if each[0] >= log.log_start_offset]
        assert kept == [row(record) for record in log.read], name
        assert len(kept) > 20


def test_sequences_epochs_and_codecs_are_what_was_sent(dump: Dump, written: dict[str, WrittenLog]) -> None:
    for name, log in written.items():
        batches = [batch for path in log.files(".log") for batch in dump.file(str(path)).batches]
        if name.startswith("codec-"):
            assert {batch.codec for batch in batches} == {name.removeprefix("codec-")}
        if name == "append-time":
            assert {batch.time_type for batch in batches} == {"LogAppendTime"}
        if name == "truncated":
            assert [batch.leader_epoch for batch in batches] == sorted(batch.leader_epoch for batch in batches)
            assert {batch.leader_epoch for batch in batches} == {0, 1, 2}
        if name == "compacted":
            assert any(batch.delete_horizon_ms is not None for batch in batches)


def test_apache_shows_our_snapshots_and_aborted_transactions(dump: Dump, written: dict[str, WrittenLog]) -> None:
    for log in written.values():
        aborted = [entry for path in log.files(".txnindex") for entry in dump.file(str(path)).aborted]
        assert aborted == [tuple(entry) for entry in log.aborted]
        last_snapshot = dump.file(str(log.files(".snapshot")[-1]))
        assert {
            each.producer_id: (each.producer_epoch, each.last_sequence, each.current_txn_first_offset)
            for each in last_snapshot.producers
        } == {
            producer_id: (entry.epoch, entry.last_sequence, entry.transaction_first_offset)
            for producer_id, entry in log.producers.items()
        }


@pytest.mark.parametrize("option", ["--index-sanity-check", "--verify-index-only"])
def test_indexes_pass_apaches_checks(apache_kafka: ApacheKafka, written: dict[str, WrittenLog], option: str) -> None:
    indexes = [path for log in written.values() for path in log.files(".index", ".timeindex")]
    dump = apache_kafka.dump_log_segments(indexes, option)
    assert dump.complaints == []
    assert len(dump.files) == len(indexes)
    if option == "--index-sanity-check":
        assert all(file.passed_sanity_check or file.is_empty for file in dump.files)
        assert sum(file.passed_sanity_check for file in dump.files) > 20


def test_index_checks_find_a_wrong_entry(apache_kafka: ApacheKafka, written: dict[str, WrittenLog], tmp_path: Path) -> None:
    source = written["codec-none"].files(".index")[0]
    data = bytearray(source.read_bytes())
    data[3] ^= 1  # the offset of the first entry
    (tmp_path / source.name).write_bytes(data)
    (tmp_path / source.with_suffix(".log").name).write_bytes(source.with_suffix(".log").read_bytes())
    dump = apache_kafka.dump_log_segments([tmp_path / source.name])
    assert f"Mismatches in :{tmp_path / source.name}" in dump.complaints
