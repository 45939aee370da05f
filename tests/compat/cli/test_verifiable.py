"""`ottla verifiable-producer` and `-consumer` compared with Kafka's: the same events with the same fields."""

import json
import signal
import subprocess
from collections.abc import Sequence
from typing import Any

import pytest
from tests.compat.cli.conftest import RunOttla
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.kafka_server import HANG_S
from tests.support.servers.ottla_server import OTTLA

PRODUCER, CONSUMER = (f"org.apache.kafka.tools.Verifiable{name}" for name in ("Producer", "Consumer"))
Event = dict[str, Any]
VARYING = ("timestamp", "avg_throughput", "message")


def events(lines: Sequence[str]) -> list[Event]:
    return [json.loads(line) for line in lines if line.startswith("{")]


def comparable(found: list[Event]) -> list[Event]:
    """Events without the values that no two runs share."""
    return [{name: None if name in VARYING else value for name, value in event.items()} for event in found]


@pytest.fixture
def created(ottla: RunOttla, topic: str) -> tuple[str, str]:
    names = (f"{topic}-a", f"{topic}-b")
    assert ottla("topics", "create", *names, "--partitions", 1).rc == 0
    return names


def renamed(found: list[Event], new: str, old: str) -> list[Event]:
    return [json.loads(json.dumps(event).replace(old, new)) for event in found]


@pytest.mark.parametrize(
    "flags",
    [
        (),
        ("--acks", "0", "--repeating-keys", "2", "--value-prefix", "7", "--message-create-time", "1000"),
        pytest.param(("--command-config", "small.properties"), marks=pytest.mark.slow),
    ],
    ids=["plain", "keys", "refused"],
)
def test_producer_prints_kafkas_events(
    ottla: RunOttla,
    apache_kafka: ApacheKafka,
    bootstrap: str,
    created: tuple[str, str],
    flags: tuple[str, ...],
    tmp_path: Any,
) -> None:
    (tmp_path / "small.properties").write_text("max.request.size=70\n")
    flags = tuple(str(tmp_path / flag) if flag.endswith(".properties") else flag for flag in flags)
    rest = ("--max-messages", "3", "--bootstrap-server", bootstrap, *flags)
    ours = events(ottla("verifiable-producer", "--topic", created[0], *rest).lines)
    theirs = events(apache_kafka.run_tool(PRODUCER, "--topic", created[1], *rest).stdout.splitlines())
    assert comparable(ours) == comparable(renamed(theirs, *created))


@pytest.mark.parametrize("protocol", [pytest.param("classic", marks=pytest.mark.slow), "consumer"])
def test_consumer_prints_kafkas_events(
    ottla: RunOttla, apache_kafka: ApacheKafka, bootstrap: str, created: tuple[str, str], protocol: str
) -> None:
    topic = created[0]
    assert ottla("verifiable-producer", topic, "--max-messages", 4, "--repeating-keys", 2, "--throughput", 100).rc == 0
    rest = ("--topic", topic, "--bootstrap-server", bootstrap, "--max-messages", "4", "--verbose", "--group-protocol", protocol)
    ours = events(ottla("verifiable-consumer", "--group-id", f"{topic}-a", *rest).lines)
    theirs = events(apache_kafka.run_tool(CONSUMER, "--group-id", f"{topic}-b", *rest).stdout.splitlines())
    assert comparable(ours) == comparable(theirs)


def test_sigterm_ends_the_consumer_with_kafkas_events(
    ottla: RunOttla, apache_kafka: ApacheKafka, bootstrap: str, created: tuple[str, str]
) -> None:
    topic = created[0]
    assert ottla("verifiable-producer", topic, "--max-messages", 4).rc == 0
    rest = ["--topic", topic, "--bootstrap-server", bootstrap, "--group-id"]
    java = [*apache_kafka.jvm(), "-cp", apache_kafka.classpath, CONSUMER]
    ours = until_terminated([*OTTLA, "verifiable-consumer", *rest, f"{topic}-a"])
    theirs = until_terminated([*java, *rest, f"{topic}-b"])
    assert comparable(ours) == comparable(theirs)


def until_terminated(command: Sequence[str]) -> list[Event]:
    """The events of a consumer that gets SIGTERM after its first commit."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:  # to the end: communicate() would lose what is buffered here
            lines.append(line)
            if '"offsets_committed"' in line:
                process.send_signal(signal.SIGTERM)
        process.wait(HANG_S)
    return events(lines)
