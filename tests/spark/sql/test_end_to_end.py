"""`ottla sql` in a process of its own, with a Spark of its own: one shot, and the shell on a terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ottla import Producer
from ottla.testing import Broker

pytestmark = pytest.mark.slow
LIMIT_S = 120.0


def environment(tmp_path: Path) -> dict[str, str]:
    homes = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "XDG_STATE_HOME": str(tmp_path / "state")}
    return {
        **os.environ,
        **homes,
        "OTTLA_SPARK_ARCHIVE": "off",
        "TERM": "dumb",
        "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }


def fill(broker: Broker, topic: str, count: int) -> None:
    broker.create_topic(topic, partitions=2)
    with Producer(broker.bootstrap_servers) as producer:
        values = [b'{"id": %d, "amount": %d.5}' % (number, number) for number in range(count)]
        assert producer.send_many(topic, values).wait(30) == count


def test_one_shot_prints_json_lines_and_errors_are_two_lines(tmp_path: Path) -> None:
    with Broker() as broker:
        fill(broker, "orders-v1", 10)
        text = (
            "CREATE STREAM orders (id BIGINT, amount DOUBLE) WITH (topic='orders-v1', format='json');\n"
            "SELECT count(*) AS n, sum(amount) AS total FROM orders;\n"
            "SELECT value FROM orders-v1 WHERE offset = 0 AND key IS NULL;\n"
            "SELECT raise_error('stop here') FROM orders"
        )
        command = [sys.executable, "-m", "ottla", "sql", "-b", broker.bootstrap_servers, "--json", "--master", "local[2]", text]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, env=environment(tmp_path), check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines[0] == {"n": 10, "total": 50.0}
    assert all(set(line) == {"value"} for line in lines[1:])
    assert done.returncode == 1
    first, *_, last = done.stderr.splitlines()
    assert first.startswith("ottla: line 4: ")
    assert "stop here" in first
    assert last.endswith("sql.log has the trace)")
    assert "Traceback" in (tmp_path / "state" / "ottla" / "sql.log").read_text()


def test_mistake_in_a_later_statement_is_told_before_the_first_is_run(tmp_path: Path) -> None:
    file = tmp_path / "report.sql"
    file.write_text(
        "CREATE STREAM orders (id BIGINT, amount DOUBLE) WITH (topic='orders-v1', format='json');\n"
        "CREATE STREAM copy (id BIGINT) WITH (format='json', partitions=1);\n"
        "INSERT INTO copy SELECT id FROM orders;\n"
        "SELECT o.id FROM orders o JOIN copy c ON o.id = c.id\n"
        "  WHERE c.amount > 3;\n"
    )
    with Broker() as broker:
        fill(broker, "orders-v1", 3)
        command = [
            sys.executable,
            "-m",
            "ottla",
            "sql",
            "-b",
            broker.bootstrap_servers,
            "--master",
            "local[2]",
            "-f",
            str(file),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, env=environment(tmp_path), check=False)
        listed = [sys.executable, "-m", "ottla", "topics", "list", "-b", broker.bootstrap_servers]
        topics = subprocess.run(listed, capture_output=True, text=True, timeout=LIMIT_S, check=True).stdout.split()
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "ottla: line 5, column 9: there is no column c.amount: did you mean amount?\n"
    assert "copy" not in topics
    assert not list((tmp_path / "config").rglob("*.json"))


class Terminal:
    """A shell on a pseudo-terminal."""

    def __init__(self, command: list[str], variables: dict[str, str]) -> None:
        self.seen = ""
        self.pid, self._file = pty.fork()
        if self.pid == 0:
            os.execvpe(command[0], command, variables)

    def type(self, text: str) -> None:
        os.write(self._file, text.encode())

    def expect(self, pattern: str) -> str:
        """Read until the pattern comes; what was read before it is dropped."""
        end_s = time.monotonic() + LIMIT_S
        while (found := re.search(pattern, self.seen)) is None:
            left_s = end_s - time.monotonic()
            ready, _, _ = select.select([self._file], [], [], max(0.0, left_s))
            assert ready, f"{pattern!r} did not come: {self.seen[-2000:]!r}"
            try:
                piece = os.read(self._file, 65536)
            except OSError:  # Linux ends a pseudo-terminal with an error
                piece = b""
            assert piece, f"the shell ended before {pattern!r}: {self.seen[-2000:]!r}"
            self.seen += piece.decode("utf-8", "replace")
        before, self.seen = self.seen[: found.end()], self.seen[found.end() :]
        return before

    def end(self) -> int:
        """Read until the shell has ended; returns its exit code."""
        end_s = time.monotonic() + LIMIT_S
        while True:
            ready, _, _ = select.select([self._file], [], [], max(0.0, end_s - time.monotonic()))
            assert ready, f"the shell has not ended: {self.seen[-2000:]!r}"
            try:
                self.seen += os.read(self._file, 65536).decode("utf-8", "replace")
            except OSError:  # Linux ends a pseudo-terminal with an error
                break
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def test_shell_runs_statements_and_ctrl_c_ends_a_query_only(tmp_path: Path) -> None:
    with Broker() as broker:
        fill(broker, "orders", 3)
        command = [sys.executable, "-m", "ottla", "sql", "-b", broker.bootstrap_servers, "--master", "local[2]"]
        shell = Terminal(command, environment(tmp_path))
        try:
            shell.expect("Ctrl-D ends the shell")
            shell.expect("ottla> ")
            shell.type("SELECT count(*) AS records\n")
            shell.expect(r"\.\.\. ")
            shell.type("FROM orders;\n")
            shell.expect("starting Spark")
            shell.expect(r"records\s+3\s")
            shell.expect("ottla> ")
            shell.type("SET 'auto.offset.reset'='earliest'; SELECT value FROM orders EMIT CHANGES;\n")
            shell.expect(r"\"amount\": 2\.5")
            shell.type("\x03")
            shell.expect("ottla> ")
            shell.type("SELECT 6 * 7 AS answer;\n")
            shell.expect(r"answer\s+42\s")
            shell.expect("ottla> ")  # before the prompt the terminal takes Ctrl-D for the end of a line, not of the input
            shell.type("\x04")
            assert shell.end() == 0
        except BaseException:
            os.kill(shell.pid, signal.SIGTERM)
            raise
    assert "SELECT 6 * 7 AS answer;" in (tmp_path / "state" / "ottla" / "sql_history").read_text()


def test_ctrl_c_cancels_the_job_of_a_batch(tmp_path: Path) -> None:
    with Broker() as broker:
        command = [sys.executable, "-m", "ottla", "sql", "-b", broker.bootstrap_servers, "--master", "local[2]"]
        shell = Terminal(command, environment(tmp_path))
        try:
            shell.expect("ottla> ")
            shell.type("SELECT 1 AS one;\n")
            shell.expect(r"one\s+1\s")
            shell.expect("ottla> ")
            shell.type("SELECT count(*) FROM range(1000000000000) WHERE sha2(string(id), 256) = 'x';\n")
            shell.expect("\n")
            time.sleep(3)  # the job is under way: nothing on the screen tells
            shell.type("\x03")
            shell.expect("interrupted")
            shell.expect("ottla> ")
            shell.type("\x04")
            assert shell.end() == 0
        except BaseException:
            os.kill(shell.pid, signal.SIGTERM)
            raise
