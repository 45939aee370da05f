"""Apache Kafka started on a directory in which Ottla has written: it must accept the logs as its own.

The directory was formatted and filled by Apache, and its metadata log stays. Ottla opens the partition folders, appends, rolls,
truncates, compacts and runs transactions; `empty` is Ottla's from its first record on. Then the clean-shutdown mark and the
recovery points are removed, so that Apache checks every batch and rebuilds every index. What its consumer reads must be
what Ottla read, and no log file may have changed.
"""

import asyncio
import shutil
from pathlib import Path

import pytest
from tests.support.logs.apache_logs import COMPACTED_TOPICS, SETTINGS, TOPICS, LogsFromApache, SeenTopic, read_seen
from tests.support.logs.open_apaches_log import open_apaches_log, seen_by
from tests.support.logs.ottla_logs import LogWriter
from tests.support.servers.apache_kafka import ApacheKafka

from ottla.log.partition_log import PartitionLog
from ottla.log.read import Isolation
from ottla.records.compression import Codec
from ottla.sim.world import ManualClock

LATER_MS = 1_700_100_000_000


async def write_more(topic: str, log: PartitionLog) -> None:
    """Append after Apache's last record, in the last leader epoch of the log."""
    log.clock = ManualClock(LATER_MS)  # records must not be far ahead of the broker's time
    writer = LogWriter(log, log.clock, leader_epoch=log.latest_epoch or 0, large_value_bytes=1000)
    if topic == "deleted":
        await log.truncate_to(log.log_end_offset - 75)
    for number in range(40):
        writer.send(5, codec=Codec(number % 5), keys=15, producer_id=90_000 + number % 2)
    for number in range(20):
        writer.send(3, keys=15, producer_id=90_010, transactional=True)
        writer.end(90_010, is_commit=number % 3 != 0)
    if topic in COMPACTED_TOPICS:
        log.roll()
        assert await writer.compact() >= 1


async def go_on(directory: Path, topic: str) -> SeenTopic:
    log, _ = await open_apaches_log(directory / f"{topic}-0", directory, clean_shutdown=True)
    await write_more(topic, log)
    await log.delete_due_files()
    seen = SeenTopic(
        records=seen_by(log, Isolation.HIGH_WATERMARK),
        committed=seen_by(log, Isolation.COMMITTED),
        beginning=log.log_start_offset,
        end=log.log_end_offset,
        last_stable=log.last_stable_offset,
    )
    await log.close()
    return seen


def log_files(directory: Path) -> dict[str, bytes]:
    paths = [path for topic in TOPICS for path in (directory / f"{topic}-0").glob("*.log")]
    return {str(path.relative_to(directory)): path.read_bytes() for path in sorted(paths)}


@pytest.mark.slow
def test_apache_takes_over_what_ottla_wrote(
    apache_kafka: ApacheKafka, logs_from_apache: LogsFromApache, tmp_path: Path
) -> None:
    directory = Path(shutil.copytree(logs_from_apache.stopped, tmp_path / "data"))
    ours = {topic: asyncio.run(go_on(directory, topic)) for topic in TOPICS}
    (directory / ".kafka_cleanshutdown").unlink()
    (directory / "recovery-point-offset-checkpoint").unlink()
    files = log_files(directory)

    # No compaction: it would rewrite the files that are compared.
    with apache_kafka.start_server(SETTINGS | {"log.cleaner.enable": "false"}, data_dir=directory) as server:
        output = apache_kafka.run_java("ReadTopics.java", server.bootstrap, *TOPICS)
        after = log_files(directory)
    assert after.items() <= files.items()
    gone = files.keys() - after.keys()
    assert all(name.startswith("deleted-0/") for name in gone), "only files before the log start offset may be deleted"
    (tmp_path / "seen.jsonl").write_text(output.stdout)
    theirs = read_seen(tmp_path / "seen.jsonl")
    for topic in TOPICS:
        assert theirs[topic].records == ours[topic].records, topic
        assert theirs[topic].committed == ours[topic].committed, topic
        assert (theirs[topic].beginning, theirs[topic].end) == (ours[topic].beginning, ours[topic].end), topic
        assert theirs[topic].last_stable == ours[topic].last_stable, topic
        assert ours[topic].end > logs_from_apache.seen[topic].end, topic
