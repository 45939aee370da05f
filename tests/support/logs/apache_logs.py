"""Log directories that a real Apache Kafka 4.3.0 wrote, and their content as Kafka's own clients read it.

Written once per test run (also with several pytest workers) by java/FillTopics.java in two stages with a restart between them:

    stopped/    the directory after a clean shutdown
    crashed/    its files just before that, with the server still running: no clean shutdown file, stale checkpoints, indexes
                preallocated and padded with zeros
    recovered/  `crashed` after Apache Kafka itself was started on it, recovered it and was stopped

A test that writes to a log works on a copy (`LogsFromApache.copy`).
"""

import fcntl
import json
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.kafka_server import KafkaServer

CODEC_TOPICS = ("codec-none", "codec-gzip", "codec-snappy", "codec-lz4", "codec-zstd")
COMPACTED_TOPICS = ("compacted", "compacted-expired", "compacted-transactions")
TOPICS = (*CODEC_TOPICS, *COMPACTED_TOPICS, "append-time", "transactions", "deleted", "empty")

SETTINGS: dict[str, object] = {
    "log.cleaner.backoff.ms": 50,
    "log.cleaner.dedupe.buffer.size": 8 * 1024 * 1024,
    "log.segment.delete.delay.ms": 0,
    "log.initial.task.delay.ms": 0,
    "log.message.timestamp.before.max.ms": 2**63 - 1,
    # Only a clean shutdown may write the checkpoints, so that `crashed` has old ones.
    "log.flush.offset.checkpoint.interval.ms": 3_600_000,
    "log.flush.start.offset.checkpoint.interval.ms": 3_600_000,
}


@dataclass(frozen=True, slots=True)
class SeenRecord:
    """A record as Apache's consumer returned it."""

    offset: int
    timestamp: int
    append_time: bool
    leader_epoch: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


@dataclass(slots=True)
class SeenTopic:
    """Partition 0 of a topic, as Apache's clients read it."""

    records: list[SeenRecord] = field(default_factory=list)
    committed: list[SeenRecord] = field(default_factory=list)
    beginning: int = -1
    end: int = -1
    last_stable: int = -1
    lookups: dict[int, tuple[int, int] | None] = field(default_factory=dict)
    """Requested timestamp → (offset, timestamp) found."""
    producers: dict[int, dict[str, int]] = field(default_factory=dict)
    """Producer id → its fields in DescribeProducers."""


@dataclass(frozen=True, slots=True)
class LogsFromApache:
    """The directories and their content."""

    stopped: Path
    crashed: Path
    recovered: Path
    seen: dict[str, SeenTopic]

    def copy(self, topic: str, into: Path, *, crashed: bool = False) -> Path:
        """A copy of partition 0 of `topic`, which may be written to."""
        source = self.crashed if crashed else self.stopped
        return Path(shutil.copytree(source / f"{topic}-0", into / f"{topic}-0"))


def make_logs(kafka: ApacheKafka, folder: Path) -> LogsFromApache:
    """The logs in `folder`, written there by the first process that calls this; the others wait for it."""
    folder.mkdir(parents=True, exist_ok=True)
    seen_path = folder / "seen.jsonl"
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        failed = folder / "failed"
        if failed.exists():
            raise AssertionError(f"another worker could not make the logs:\n{failed.read_text()}")
        if not seen_path.exists():
            failed.write_text("it was interrupted")
            try:
                _write_logs(kafka, folder / "stopped", folder / "crashed", folder / "recovered", seen_path)
            except Exception as error:
                failed.write_text(str(error))
                raise
            failed.unlink()
    return LogsFromApache(folder / "stopped", folder / "crashed", folder / "recovered", read_seen(seen_path))


def _write_logs(kafka: ApacheKafka, stopped: Path, crashed: Path, recovered: Path, seen_path: Path) -> None:
    with kafka.start_server(SETTINGS, data_dir=stopped) as server:
        kafka.run_java("FillTopics.java", server.bootstrap, "first")
        _await_cleaned(server)
    with kafka.start_server(SETTINGS, data_dir=stopped) as server:
        kafka.run_java("FillTopics.java", server.bootstrap, "second")
        _await_cleaned(server)
        read = kafka.run_java("ReadTopics.java", server.bootstrap, *TOPICS)
        shutil.copytree(stopped, crashed)
    shutil.copytree(crashed, recovered)
    kafka.start_server(SETTINGS, data_dir=recovered).stop()
    seen_path.with_suffix(".part").write_text(read.stdout)
    seen_path.with_suffix(".part").rename(seen_path)


def _await_cleaned(server: KafkaServer) -> None:
    """Wait until the cleaner has cleaned every segment it may, of every compacted topic."""
    _await(lambda: all(_is_cleaned(server.data_dir, topic) for topic in COMPACTED_TOPICS), "the log cleaner to finish")


def _is_cleaned(data_dir: Path, topic: str) -> bool:
    active = max(int(path.stem) for path in (data_dir / f"{topic}-0").glob("*.log"))
    lines = (data_dir / "cleaner-offset-checkpoint").read_text().splitlines()[2:]
    return f"{topic} 0 {active}" in lines


def _await(condition: Callable[[], bool], what: str, timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout_s} s in vain for {what}")
        time.sleep(0.05)


def read_seen(path: Path) -> dict[str, SeenTopic]:
    """What java/ReadTopics.java printed."""
    topics = {topic: SeenTopic() for topic in TOPICS}
    for line in path.read_text(encoding="utf-8").splitlines():
        row: dict[str, Any] = json.loads(line)
        topic = topics[row["topic"]]
        if "offset" in row:
            (topic.records if row["isolation"] == "read_uncommitted" else topic.committed).append(_record(row))
        elif "beginning" in row and row["isolation"] == "read_uncommitted":
            topic.beginning, topic.end = row["beginning"], row["end"]
        elif "beginning" in row:
            topic.last_stable = row["end"]
        elif "at_time" in row:
            found = row["found_offset"], row["found_timestamp"]
            topic.lookups[row["at_time"]] = None if found[0] is None else found
        else:
            topic.producers[row["producer_id"]] = row
    return topics


def _record(row: dict[str, Any]) -> SeenRecord:
    return SeenRecord(
        offset=row["offset"],
        timestamp=row["timestamp"],
        append_time=row["append_time"],
        leader_epoch=row["leader_epoch"],
        key=_bytes(row["key"]),
        value=_bytes(row["value"]),
        headers=tuple((name, _bytes(value)) for name, value in row["headers"]),
    )


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)
