"""A broker in this process for the verifiable clients, which run in processes of their own or in that of the test."""

import json
import subprocess
from typing import Any

import pytest
from tests.support.servers.kafka_server import HANG_S
from tests.support.servers.ottla_server import OTTLA
from tests.unit.cli.real_broker import broker, ottla, topic

__all__ = ["broker", "events_of", "ottla", "signalled", "topic"]


@pytest.fixture
def topic_partitions() -> int:
    return 1


def events_of(lines: list[str], name: str = "") -> list[dict[str, Any]]:
    """The events in `lines`; only those with this name if it is given."""
    found = [json.loads(line) for line in lines]
    return [event for event in found if not name or event["name"] == name]


def signalled(arguments: tuple[object, ...], awaited: str, number: int) -> tuple[int, list[str]]:
    """Run a command in a process, send a signal once the event `awaited` was printed; returns exit code and lines."""
    command = [*OTTLA, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines: list[str] = []
        is_signalled = False
        for line in process.stdout:  # to the end: communicate() would lose what is buffered here
            lines.append(line)
            if json.loads(line)["name"] == awaited and not is_signalled:
                is_signalled = True
                process.send_signal(number)
                process.send_signal(number)
        return process.wait(HANG_S), lines
