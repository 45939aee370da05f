"""The start row: time from the start of the process to the first answered request (ApiVersions), on a formatted directory.

The sides take turns. The first start of each is not counted: it fills the page cache, and Python's bytecode cache. Each process
is shut down cleanly, so that the next start has nothing to recover.
"""

import select
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from bench.side_by_side.errors import LoadFailed
from bench.side_by_side.figures import APACHE, OTTLA, Figure, at_most
from bench.side_by_side.sides import SETTINGS, Bench
from tests.support.servers.kafka_server import LOG_LEVELS, SERVER_JVM_FLAGS, default_properties, free_ports, properties_text
from tests.support.servers.ottla_server import OTTLA as OTTLA_COMMAND
from tests.support.servers.ottla_server import format_ottla

STARTS, STARTS_QUICK = 5, 2
GIVE_UP_S = 60
POLL_S = 0.002
API_VERSIONS_REQUEST = bytes.fromhex("0000000e 0012 0000 00000001 0004") + b"ping"
GOAL = at_most(0.15)


def rows(bench: Bench) -> list[Figure]:
    bench.end_pair()
    starts = bench.options.scaled(STARTS, STARTS_QUICK)
    seconds: dict[str, list[float]] = {APACHE: [], OTTLA: []}
    commands = {label: _prepared(bench, label) for label in seconds}
    for number in range(starts + 1):
        for label, (command, port) in commands.items():
            took_s = start_once(command, port)
            if number:
                seconds[label].append(took_s)
                bench.progress.say(f"start to first answer, {number} of {starts}: {label} {took_s * 1000:.0f} ms")
    for label in seconds:
        shutil.rmtree(_folder(bench, label))
    figures = {label: [each * 1000 for each in taken] for label, taken in seconds.items()}
    return [Figure("start", "start to first answered request", "ms", figures[APACHE], figures[OTTLA], GOAL)]


def _folder(bench: Bench, label: str) -> Path:
    return bench.folder / label.replace(" ", "-")


def _prepared(bench: Bench, label: str) -> tuple[list[str], int]:
    """Format a directory; returns the command that starts a server on it, and its port."""
    folder = _folder(bench, label)
    folder.mkdir()
    port, controller_port = free_ports(2)
    properties = default_properties(folder / "data", port, controller_port) | SETTINGS
    config = folder / "server.properties"
    config.write_text(properties_text(properties))
    if label == APACHE:
        bench.kafka.format(folder / "data", properties)
        flags = [*SERVER_JVM_FLAGS, *LOG_LEVELS]
        return [*bench.kafka.jvm(flags), "-cp", bench.kafka.server_classpath, "kafka.Kafka", str(config)], port
    format_ottla(properties)
    return [*OTTLA_COMMAND, "server", "start", str(config)], port


def start_once(command: Sequence[str], port: int) -> float:
    """Seconds from the start of the process to its first answer. The process has ended on return."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not answered(port, began + GIVE_UP_S):
            if process.poll() is not None:
                raise LoadFailed(f"{command[0]} … ended with {process.returncode} while starting")
            if time.perf_counter() > began + GIVE_UP_S:
                raise LoadFailed(f"{command[0]} … did not answer within {GIVE_UP_S} s")
            time.sleep(POLL_S)
        took_s = time.perf_counter() - began
        process.terminate()
        process.wait(GIVE_UP_S)
    except BaseException:
        process.kill()
        process.wait()
        raise
    return took_s


def answered(port: int, deadline: float) -> bool:
    """Whether an ApiVersions request is answered. Waits for a server that listens but is not ready yet."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(API_VERSIONS_REQUEST)
            ready, _, _ = select.select([connection], [], [], max(0.0, deadline - time.perf_counter()))
            return bool(ready and connection.recv(4))
    except OSError:
        return False
