"""Kafka Connect, distributed: a file goes through a topic into another file, and the topic has each line exactly once."""

from functools import partial
from pathlib import Path

import pytest
from tests.compat.ecosystem.connect_worker import ConnectWorker
from tests.support.peers.topics import await_true, make_topic
from tests.support.peers.transactions import read
from tests.support.servers.java_programs import JavaPrograms
from tests.support.servers.kafka_server import KafkaServer
from tests.support.servers.ottla_server import StartServer

TOPIC = "file-lines"


def append(path: Path, first: int, count: int) -> list[str]:
    """Append numbered lines to a file, from `first` on."""
    lines = [f"line {number}" for number in range(first, first + count)]
    with open(path, "a") as file:
        file.writelines(f"{line}\n" for line in lines)
    return lines


def source_config(path: Path) -> dict[str, str]:
    return {
        "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
        "tasks.max": "1",
        "file": str(path),
        "topic": TOPIC,
        "exactly.once.support": "required",
        "transaction.boundary": "poll",
    }


def sink_config(path: Path) -> dict[str, str]:
    return {
        "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
        "tasks.max": "1",
        "file": str(path),
        "topics": TOPIC,
        "consumer.override.isolation.level": "read_committed",
        "consumer.override.auto.offset.reset": "earliest",
    }


@pytest.mark.slow
def test_file_to_file(start_server: StartServer, programs: JavaPrograms, tmp_path: Path) -> None:
    source, sink = tmp_path / "in.txt", tmp_path / "out.txt"
    settings = {
        "exactly.once.source.support": "enabled",
        "connector.client.config.override.policy": "All",
    }
    with start_server({"group.min.session.timeout.ms": 500}) as server:
        make_topic(server.bootstrap, TOPIC, 1)
        with ConnectWorker(programs, tmp_path, server.bootstrap, settings) as worker:
            lines = append(source, 0, 500)
            worker.put("source", source_config(source))
            worker.put("sink", sink_config(sink))
            worker.await_running("source")
            worker.await_running("sink")
            await_lines(server, lines)
            await_true(lambda: sink.exists() and sink.read_text().splitlines() == lines, "the lines in the other file")

            # The connector writes each read of the file as one transaction: it is killed in about the fourth.
            for first in range(500, 2500, 500):
                lines += append(source, first, 500)
                await_true(partial(has_more_than, server, first), "some of the new lines")
            worker.kill()
            lines += append(source, 2500, 500)
            worker.start()
            await_lines(server, lines)
            await_true(lambda: set(sink.read_text().splitlines()) == set(lines), "the lines in the other file")


def has_more_than(server: KafkaServer, count: int) -> bool:
    return len(read(server.bootstrap, TOPIC, 1, committed=True)) > count


def await_lines(server: KafkaServer, lines: list[str]) -> None:
    """Return when the topic has all lines. Fails on additional or other lines."""
    found: list[str] = []

    def complete() -> bool:
        found[:] = read(server.bootstrap, TOPIC, 1, committed=True)
        return len(found) >= len(lines)

    await_true(complete, f"{len(lines)} lines in the topic")
    assert found == lines
