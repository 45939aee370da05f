"""How `ottla produce` ends and what it says then: lost brokers, Ctrl-C, SIGTERM, refused records while it waits for input."""

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.compat.cli.conftest import RunOttla
from tests.support.peers.topics import await_true
from tests.support.servers.kafka_server import HANG_S
from tests.support.servers.ottla_server import OTTLA, StartServer, run_ottla
from tests.support.servers.restarting_server import RestartingServer


class Producing:
    """`ottla produce` in a process of its own, fed line by line."""

    def __init__(self, bootstrap: str, *arguments: str) -> None:
        command = [*OTTLA, "produce", *arguments, "-b", bootstrap]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.said = ""
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.said += line.decode()

    def write(self, *lines: int) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(b"".join(b"%d\n" % number for number in lines))
        self._process.stdin.flush()

    def await_said(self, text: str) -> None:
        await_true(lambda: text in self.said, f"{text!r} on standard error")

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def finish(self) -> int:
        """Wait for its end; returns the exit code."""
        code = self._process.wait(HANG_S)
        self._reading.join(HANG_S)
        return code

    def end_input(self) -> int:
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self.finish()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@contextmanager
def producing(bootstrap: str, *arguments: str) -> Iterator[Producing]:
    running = Producing(bootstrap, *arguments)
    try:
        yield running
    finally:
        running.kill()


def stored(bootstrap: str, topic: str) -> list[int]:
    said = run_ottla("consume", topic, "--from-beginning", "--until-end", "-b", bootstrap)
    return [int(line) for line in said.stdout.split()]


def test_lost_broker_is_told_and_records_go_on_when_it_is_back(start_server: StartServer) -> None:
    with RestartingServer(start_server) as node:
        assert run_ottla("topics", "create", "orders", "--partitions", 1, "-b", node.bootstrap).returncode == 0
        with producing(node.bootstrap, "orders") as command:
            command.write(0, 1, 2)
            await_true(lambda: stored(node.bootstrap, "orders") == [0, 1, 2], "the first records to be stored")
            node.kill()
            command.write(3, 4)
            command.await_said("Trying again until it works")
            node.start()
            command.await_said("records are being stored again")
            command.write(5)
            assert command.end_input() == 0
            assert command.said.endswith("6 records stored in orders.\n")
        assert stored(node.bootstrap, "orders") == list(range(6)), "once, and in order"

        with producing(node.bootstrap, "orders") as command:
            command.write(6)
            await_true(lambda: len(stored(node.bootstrap, "orders")) == 7, "a record to be stored")
            node.kill()
            command.write(7, 8)
            command.await_said("Trying again until it works")
            command.signal(signal.SIGINT)
            command.await_said("ending: up to 5 s for 2 records to be stored; Ctrl-C ends at once")
            command.signal(signal.SIGINT)
            assert command.finish() == 130
            assert command.said.endswith("ottla: interrupted. 1 record stored in orders, 2 not known to be stored\n")
            assert "Traceback" not in command.said
            assert "destroyed" not in command.said


def test_signals_end_it_after_what_was_read_is_stored(ottla: RunOttla, bootstrap: str, topic: str) -> None:
    assert ottla("topics", "create", topic, "--partitions", 1).rc == 0
    for number, (ending, code, said) in enumerate(
        [
            (signal.SIGTERM, 143, "ended by SIGTERM"),
            (signal.SIGHUP, 129, "ended by SIGHUP"),
            (signal.SIGINT, 130, "interrupted"),
        ]
    ):
        with producing(bootstrap, topic) as command:
            command.write(number)
            await_true(lambda: len(stored(bootstrap, topic)) == number + 1, "the record to be stored")  # noqa: B023
            command.signal(ending)
            assert command.finish() == code
            assert command.said == f"ottla: {said}. 1 record stored in {topic}\n"


def test_refused_record_ends_it_while_it_waits_for_input(ottla: RunOttla, bootstrap: str, topic: str) -> None:
    ottla("topics", "create", topic, "--config", "cleanup.policy=compact", "--partitions", 1)
    with producing(bootstrap, topic) as command:
        command.write(1)
        assert command.finish() == 1
        assert "INVALID_RECORD" in command.said
        assert command.said.endswith(f". 0 records stored in {topic}, 1 refused\n")


def test_output_without_reader_is_no_failure(bootstrap: str, topic: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [*OTTLA, "produce", topic, "--summary", "-b", bootstrap]
    done = subprocess.run(command, input=b"a\n", stdout=writing, stderr=subprocess.PIPE, timeout=HANG_S, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, f"1 record stored in {topic}.\n".encode())
