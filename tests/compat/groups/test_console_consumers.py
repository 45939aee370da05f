"""Kafka's console consumers: two without a group both see every record; two in one group share them."""

import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.compat.groups.group_state import await_members_in
from tests.support.peers.group_records import send_numbers
from tests.support.peers.topics import await_true, make_topic
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.kafka_server import HANG_S, KafkaServer

PARTITIONS = 4
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"


class Consoles:
    """Console consumers that run until the block ends, and what they have printed."""

    def __init__(self, kafka: ApacheKafka, folder: Path, count: int, arguments: Sequence[str]) -> None:
        self._outputs = [folder / f"out-{number}" for number in range(count)]
        command = [*kafka.jvm(), "-cp", kafka.classpath, CONSOLE_CONSUMER, *arguments]
        self._processes = []
        for path in self._outputs:
            with open(path, "wb") as out:
                self._processes.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out))

    def lines(self) -> list[list[str]]:
        """The records that each has printed. Its other lines are not numbers."""
        return [[line for line in path.read_text().splitlines() if line.isdigit()] for path in self._outputs]

    def end(self) -> list[int]:
        """Interrupt each (SIGINT). Returns their exit codes."""
        for process in self._processes:
            process.send_signal(signal.SIGINT)
        return [process.wait(HANG_S) for process in self._processes]

    def __enter__(self) -> "Consoles":
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
            process.wait()


@pytest.mark.slow
def test_without_a_group_both_read_every_record(cluster: KafkaServer, apache_kafka: ApacheKafka, name: str) -> None:
    make_topic(cluster.bootstrap, name, PARTITIONS)
    sent = send_numbers(cluster.bootstrap, name, PARTITIONS, 0, 40)
    arguments = ["--bootstrap-server", cluster.bootstrap, "--topic", name, "--from-beginning"]
    with tempfile.TemporaryDirectory() as folder, Consoles(apache_kafka, Path(folder), 2, arguments) as consoles:
        await_true(lambda: all(set(lines) >= set(sent) for lines in consoles.lines()), "both to print the first 40 records")
        sent += send_numbers(cluster.bootstrap, name, PARTITIONS, 40, 40)
        await_true(lambda: all(len(lines) >= 80 for lines in consoles.lines()), "both to print all 80 records")
        assert [sorted(lines, key=int) for lines in consoles.lines()] == [sent, sent]


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_in_one_group_they_share_the_records(cluster: KafkaServer, apache_kafka: ApacheKafka, name: str, protocol: str) -> None:
    make_topic(cluster.bootstrap, name, PARTITIONS)
    arguments = ["--bootstrap-server", cluster.bootstrap, "--topic", name, "--group", name]
    arguments += ["--command-property", f"group.protocol={protocol}", "--command-property", "auto.offset.reset=earliest"]
    if protocol == "classic":
        arguments += ["--command-property", "heartbeat.interval.ms=200"]
    with tempfile.TemporaryDirectory() as folder, Consoles(apache_kafka, Path(folder), 2, arguments) as consoles:
        await_members_in(cluster.bootstrap, name, members=2, partitions=PARTITIONS)
        sent = send_numbers(cluster.bootstrap, name, PARTITIONS, 0, 80)
        await_true(lambda: sum(map(len, consoles.lines())) >= len(sent), "all records")
        one, two = consoles.lines()
        assert sorted([*one, *two], key=int) == sent
        assert len(one) == len(two) == 40
        consoles.end()
