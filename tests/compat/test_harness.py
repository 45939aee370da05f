"""The harness itself: Apache Kafka starts, answers, stops cleanly, can be killed, and its tools' output is understood."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.logs.dump_log import parse_dump
from tests.support.servers.apache_kafka import ApacheKafka, ToolFailed
from tests.support.servers.kafka_server import ServerFailed


def process_exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
def test_server_takes_records_and_leaves_a_log_that_the_dump_tool_reads(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    with apache_kafka.start_server({"log.index.interval.bytes": 1}, data_dir=data_dir) as server:
        pid = server.pid
        topic = ("--bootstrap-server", server.bootstrap, "--topic", "greetings")
        apache_kafka.run_tool("org.apache.kafka.tools.TopicCommand", *topic, "--create", "--partitions", 1)
        sent = "first=one\nsecond=two\n"
        reader = ("--reader-property", "parse.key=true", "--reader-property", "key.separator==")
        apache_kafka.run_tool("org.apache.kafka.tools.ConsoleProducer", *topic, *reader, stdin=sent)
    assert not process_exists(pid)
    assert (data_dir / ".kafka_cleanshutdown").exists()

    folder = data_dir / "greetings-0"
    names = ("00000000000000000000.log", "00000000000000000000.index", "00000000000000000000.timeindex")
    dump = apache_kafka.dump_log_segments([folder / name for name in names], "--print-data-log")
    assert dump.complaints == []
    assert [(record.offset, record.key, record.payload) for record in dump.file(".log").records] == [
        (0, "first", "one"),
        (1, "second", "two"),
    ]
    assert dump.file(".timeindex").time_entries


@pytest.mark.slow
def test_a_failure_inside_the_block_kills_the_server_and_shows_its_log(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    server = apache_kafka.start_server(data_dir=tmp_path / "data")
    pid = server.pid
    with pytest.raises(ZeroDivisionError) as caught, server:
        raise ZeroDivisionError
    assert not process_exists(pid)
    assert not (tmp_path / "data" / ".kafka_cleanshutdown").exists()
    assert "Kafka Server started" in "\n".join(caught.value.__notes__)


def test_a_server_that_cannot_start_says_why(apache_kafka: ApacheKafka) -> None:
    with pytest.raises((ServerFailed, ToolFailed), match=r"num\.network\.threads"):
        apache_kafka.start_server({"num.network.threads": -3})


def test_a_tool_that_fails_shows_its_output(apache_kafka: ApacheKafka) -> None:
    with pytest.raises(ToolFailed, match="bootstrap-server"):
        apache_kafka.run_tool("org.apache.kafka.tools.TopicCommand", "--list")


def test_every_line_of_a_dump_is_understood_or_a_complaint() -> None:
    text = "Dumping a.log\nLog starting offset: 0\nMismatches in :a.log\n  Index offset: 3, log offset: 4\n"
    dump = parse_dump(text, "lost\nNon-consecutive offsets in a.log\n  3 is followed by 9\n")
    assert dump.complaints == ["Mismatches in :a.log", "  Index offset: 3, log offset: 4", "lost"]
    assert dump.gaps == {"a.log": [(3, 9)]}


def run_pytest(folder: Path, test: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run pytest on a test in a folder of its own, with no Java on the path."""
    (folder / "conftest.py").write_text("from tests.conftest import *\n")
    (folder / "test_it.py").write_text(test)
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs", f"--rootdir={folder}", str(folder)]
    bare = {"PATH": str(folder), "PYTHONPATH": f"{root}:{root / 'src'}", "HOME": str(folder)}
    return subprocess.run(command, env=bare | environment, capture_output=True, text=True, check=False, cwd=folder)


def test_without_java_the_tests_skip_and_in_ci_they_fail(tmp_path: Path) -> None:
    test = "def test_it(apache_kafka): pass\n"
    outside = run_pytest(tmp_path, test)
    assert outside.returncode == 0
    assert "1 skipped" in outside.stdout
    assert "no java on PATH" in outside.stdout
    inside = run_pytest(tmp_path, test, CI="true")
    assert inside.returncode == 1
    assert "in CI it must not be skipped" in inside.stdout


@pytest.mark.parametrize("ending", ["skip", "xfail"])
def test_known_limitation_stays_a_skip_in_ci(tmp_path: Path, ending: str) -> None:
    test = f"import pytest\n@pytest.mark.kafka\ndef test_it(): pytest.{ending}('a known limitation of the server')\n"
    inside = run_pytest(tmp_path, test, CI="true")
    assert inside.returncode == 0
    assert ("1 skipped" if ending == "skip" else "1 xfailed") in inside.stdout
