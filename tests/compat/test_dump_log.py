"""`ottla dump-log` prints what Apache's kafka-dump-log prints, line for line, over files that Apache Kafka wrote."""

import contextlib
import io
from pathlib import Path

import pytest
from tests.support.logs.apache_logs import LogsFromApache
from tests.support.servers.apache_kafka import ApacheKafka

from ottla.cli.main import main

DUMP_TOOL = "org.apache.kafka.tools.DumpLogSegments"
GAP_TITLE = "Non-consecutive offsets in "


def ours(*arguments: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), pytest.raises(SystemExit) as ended:
        main(["dump-log", "--plain", *arguments])
    assert ended.value.code == 0, out.getvalue()
    return out.getvalue()


def chunks(text: str) -> dict[str, list[str]]:
    """Lines by the file they are about, without those on gaps between offsets, which Apache prints on standard error."""
    by_file: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.splitlines():
        if line.startswith("Dumping "):
            current = by_file.setdefault(line.removeprefix("Dumping "), [])
        elif line.startswith(GAP_TITLE):
            current = []
        else:
            current.append(line)
    return by_file


def check_same(kafka: ApacheKafka, files: list[Path], *flags: str) -> None:
    assert files
    names = ",".join(str(path) for path in files)
    theirs = kafka.run_tool(DUMP_TOOL, "--files", names, *flags)
    assert theirs.stdout.count("Dumping ") == len(files)
    assert chunks(ours("--files", names, *flags)) == chunks(theirs.stdout)


def files_of(folder: Path, *patterns: str) -> list[Path]:
    return [path for pattern in patterns for path in sorted(folder.glob(pattern))]


@pytest.mark.parametrize("state", ["stopped", "crashed"])
def test_every_segment_index_and_snapshot(apache_kafka: ApacheKafka, logs_from_apache: LogsFromApache, state: str) -> None:
    folder: Path = getattr(logs_from_apache, state)
    topics = [topic for topic in sorted(folder.glob("*-0")) if not topic.name.startswith("__")]
    assert len(topics) > 5
    patterns = ("*.log", "*.index", "*.timeindex", "*.txnindex", "*.snapshot")
    # In an index that is only padding, Apache's tool prints the first entry, or fails.
    files = [path for topic in topics for path in files_of(topic, *patterns) if path.suffix == ".log" or not _is_padding(path)]
    assert len({path.suffix for path in files}) == 5
    check_same(apache_kafka, files, "--deep-iteration")


def _is_padding(path: Path) -> bool:
    return path.stat().st_size > 0 and not any(path.read_bytes())


def test_content_of_records(apache_kafka: ApacheKafka, logs_from_apache: LogsFromApache) -> None:
    """Only text records: for bytes that are not UTF-8, Java and Python print different numbers of replacement characters."""
    folder = logs_from_apache.stopped
    check_same(
        apache_kafka, files_of(folder, "transactions-0/*.log", "compacted*/*.log", "deleted-0/*.log"), "--print-data-log"
    )


def test_internal_topics(apache_kafka: ApacheKafka, logs_from_apache: LogsFromApache) -> None:
    folder = logs_from_apache.stopped
    for topic, flag in (
        ("__transaction_state-*", "--transaction-log-decoder"),
        ("__cluster_metadata-0", "--cluster-metadata-decoder"),
    ):
        files = files_of(folder, f"{topic}/*.log", f"{topic}/*.checkpoint")
        check_same(apache_kafka, files, flag)


def test_flags(apache_kafka: ApacheKafka, logs_from_apache: LogsFromApache) -> None:
    folder = logs_from_apache.stopped / "codec-zstd-0"
    logs, indexes = files_of(folder, "*.log"), files_of(folder, "*.index", "*.timeindex")
    check_same(apache_kafka, logs)
    check_same(apache_kafka, logs, "--deep-iteration")
    check_same(apache_kafka, logs, "--max-bytes", "1000")
    check_same(apache_kafka, indexes, "--index-sanity-check")
    check_same(apache_kafka, indexes, "--verify-index-only")
