"""Whole partition logs that Apache Kafka wrote, opened with Ottla: after a clean shutdown, and after a crash.

Ottla must find what Apache's consumer and admin client saw. Apache expired producers whose records are years old; Ottla opens
the logs with a clock of that time, which keeps them, so that they can be compared.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.logs.apache_logs import TOPICS, LogsFromApache, SeenTopic
from tests.support.logs.open_apaches_log import open_apaches_log, seen_by

from ottla.log.directories.checkpoint import parse_epochs
from ottla.log.partition_log import PartitionLog
from ottla.log.read import Isolation
from ottla.log.recovery.log_loader import LoadReport
from ottla.records.batch import iterate_batches
from ottla.records.reader import read_records

OpenedTest = Callable[[PartitionLog, LoadReport, SeenTopic], None]


def check_opened(logs: LogsFromApache, topic: str, into: Path, crashed: bool, check: OpenedTest) -> None:
    async def run() -> None:
        folder = logs.copy(topic, into, crashed=crashed)
        directory = logs.crashed if crashed else logs.stopped
        log, report = await open_apaches_log(folder, directory, clean_shutdown=not crashed)
        check(log, report, logs.seen[topic])
        await log.close()

    asyncio.run(run())


both_ends = pytest.mark.parametrize("crashed", [False, True], ids=["stopped", "crashed"])
every_topic = pytest.mark.parametrize("topic", TOPICS)


@both_ends
@every_topic
def test_records_and_offsets_are_those_apache_sees(
    logs_from_apache: LogsFromApache, topic: str, crashed: bool, tmp_path: Path
) -> None:
    def check(log: PartitionLog, report: LoadReport, seen: SeenTopic) -> None:
        assert report.bytes_cut == 0
        assert log.log_end_offset == seen.end
        if crashed:  # Apache saved only the first delete-records
            assert log.log_start_offset <= seen.beginning
            log.delete_records(seen.beginning)
        assert log.log_start_offset == seen.beginning
        assert log.last_stable_offset == seen.last_stable
        assert seen_by(log, Isolation.HIGH_WATERMARK) == seen.records
        assert seen_by(log, Isolation.COMMITTED) == seen.committed

    check_opened(logs_from_apache, topic, tmp_path, crashed, check)


@both_ends
@every_topic
def test_lookups_by_time_find_what_apache_finds(
    logs_from_apache: LogsFromApache, topic: str, crashed: bool, tmp_path: Path
) -> None:
    """Apache searches only the first segment that could match, and finds nothing if the record was deleted or compacted away.

    Ottla continues with the next segment: then its answer is checked against the records.
    """

    def check(log: PartitionLog, report: LoadReport, seen: SeenTopic) -> None:
        log.delete_records(seen.beginning)
        batches = [batch for segment in log.segments for batch in iterate_batches(segment.file.read(0, segment.size))]
        records = [record for batch in batches for record in read_records(batch) if record.offset >= seen.beginning]
        assert seen.lookups
        for timestamp, theirs in seen.lookups.items():
            found = log.offset_for_time(timestamp)
            ours = None if found is None else (found.offset, found.timestamp)
            assert ours == next(((each.offset, each.timestamp) for each in records if each.timestamp >= timestamp), None)
            assert theirs in (ours, None)

    check_opened(logs_from_apache, topic, tmp_path, crashed, check)


@both_ends
@every_topic
def test_producers_and_open_transactions_are_those_apache_describes(
    logs_from_apache: LogsFromApache, topic: str, crashed: bool, tmp_path: Path
) -> None:
    def check(log: PartitionLog, report: LoadReport, seen: SeenTopic) -> None:
        ours = {
            producer_id: (
                entry.epoch,
                entry.last_sequence,
                entry.last_timestamp_ms,
                -1 if entry.transaction_first_offset is None else entry.transaction_first_offset,
            )
            for producer_id, entry in log.producers.producers.items()
        }
        theirs = {
            producer_id: (state["producer_epoch"], state["last_sequence"], state["last_timestamp"], state["transaction_start"])
            for producer_id, state in seen.producers.items()
        }
        if crashed:  # recovery with an old clock also finds the producers that Apache expired
            assert theirs.items() <= ours.items()
        else:
            assert ours == theirs

    check_opened(logs_from_apache, topic, tmp_path, crashed, check)


@every_topic
def test_opening_and_closing_a_stopped_log_changes_no_byte(
    logs_from_apache: LogsFromApache, topic: str, tmp_path: Path
) -> None:
    check_opened(logs_from_apache, topic, tmp_path, False, lambda log, report, seen: None)
    before, after = logs_from_apache.stopped / f"{topic}-0", tmp_path / f"{topic}-0"
    kept = {path.name: path.read_bytes() for path in after.iterdir()}
    for path in before.iterdir():
        # Snapshots without a segment come from an earlier shutdown: removed at once, as by Apache.
        if path.suffix == ".snapshot" and path.name not in kept:
            continue
        assert kept.pop(path.name) == path.read_bytes(), path.name
    assert kept == {}


@every_topic
def test_recovery_leaves_the_files_that_apaches_recovery_leaves(
    logs_from_apache: LogsFromApache, topic: str, tmp_path: Path
) -> None:
    check_opened(logs_from_apache, topic, tmp_path, True, lambda log, report, seen: None)
    theirs, ours = logs_from_apache.recovered / f"{topic}-0", tmp_path / f"{topic}-0"
    compared = 0
    for suffix in ("log", "index", "timeindex", "txnindex"):
        assert files(ours, suffix) == files(theirs, suffix), suffix
        compared += len(files(ours, suffix))
    assert compared >= 3
    # An epoch without records is dropped when a log is opened, but stays in the file until the next leader's epoch replaces it.
    our_epochs, their_epochs = [] if topic == "empty" else epochs(ours), epochs(theirs)
    if topic == "deleted":
        # Apache leaves the epochs cut at a log start that the crash undid. Ottla reads them from the batches again.
        (their_first, their_start), (our_first, our_start) = their_epochs.pop(0), our_epochs.pop(0)
        assert our_first == their_first
        assert our_start < their_start
    assert their_epochs[: len(our_epochs)] == our_epochs
    assert len(their_epochs) == len(our_epochs) + 1, "Apache became the leader again, in a new epoch"


def files(folder: Path, suffix: str) -> dict[str, bytes]:
    """Files by name, without empty transaction indexes: Apache creates them, and nothing depends on them."""
    return {
        path.name: path.read_bytes()
        for path in sorted(folder.glob(f"*.{suffix}"))
        if path.stat().st_size or suffix != "txnindex"
    }


def epochs(folder: Path) -> list[tuple[int, int]]:
    path = folder / "leader-epoch-checkpoint"
    return parse_epochs(str(path), path.read_bytes())
