"""The Spark that stays between calls of `ottla sql`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.spark.sql.test_end_to_end import Terminal, environment, fill

from ottla.errors import OttlaError
from ottla.spark import warm
from ottla.spark.warm import Wanted, is_usual, minutes_idle, runtime_folder
from ottla.testing import Broker

LIMIT_S = 400.0


def test_only_a_terminal_leaves_spark_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert is_usual({})
    assert not is_usual({"CI": "true"})
    assert not is_usual({"PYTEST_CURRENT_TEST": "x"})
    assert not is_usual({"OTTLA_SQL_WARM": "off"})
    assert is_usual({"OTTLA_SQL_WARM": "30"})
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False, raising=False)
    assert not is_usual({})


def test_minutes_are_those_of_the_environment() -> None:
    assert minutes_idle({}) == minutes_idle({"OTTLA_SQL_WARM": "off"}) == 10
    assert minutes_idle({"OTTLA_SQL_WARM": "0.5"}) == 0.5
    with pytest.raises(OttlaError, match="OTTLA_SQL_WARM is 'soon': it must be off, or how many minutes"):
        minutes_idle({"OTTLA_SQL_WARM": "soon"})


def test_folder_is_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert runtime_folder().stat().st_mode & 0o777 == 0o700
    runtime_folder().chmod(0o755)
    with pytest.raises(OttlaError, match="that nobody else can open: chmod 700"):
        runtime_folder()
    runtime_folder_link = tmp_path / "ottla"
    runtime_folder_link.rmdir()
    runtime_folder_link.symlink_to(tmp_path)
    with pytest.raises(OttlaError, match="must be a folder of yours"):
        runtime_folder()


def test_key_is_that_of_the_spark_that_would_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = Wanted("local[2]", {"spark.x": "1"}, "/log", 60)
    key = wanted.key()
    monkeypatch.setenv("SSH_TTY", "/dev/pts/7")
    monkeypatch.setenv("PWD", "/elsewhere")
    assert wanted.key() == Wanted("local[2]", {"spark.x": "1"}, "/log", 5).key() == key
    assert Wanted("local[3]", {"spark.x": "1"}, "/log", 60).key() != key
    assert Wanted("local[2]", {"spark.x": "2"}, "/log", 60).key() != key
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy")
    assert wanted.key() != key
    monkeypatch.delenv("HTTPS_PROXY")
    monkeypatch.chdir(tmp_path)
    assert wanted.key() != key


def test_nothing_is_attached_where_nothing_can_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "file"))
    assert warm.attach(Wanted("local[2]", {}, str(tmp_path / "log"), 60)) is None


class Calls:
    """Calls of `ottla sql --warm`, with a folder of their own."""

    def __init__(self, broker: Broker, tmp_path: Path) -> None:
        self.variables = environment(tmp_path) | {"XDG_RUNTIME_DIR": str(tmp_path / "run"), "OTTLA_SQL_WARM": "5"}
        (tmp_path / "run").mkdir()
        self._lock = tmp_path / "run" / "ottla" / "sql.lock"
        self.command = [sys.executable, "-m", "ottla", "sql", "-b", broker.bootstrap_servers, "--master", "local[2]", "--warm"]

    def __call__(self, *arguments: str) -> str:
        done = subprocess.run([*self.command, *arguments], capture_output=True, text=True, timeout=LIMIT_S, env=self.variables)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def stop(self) -> str:
        command = [sys.executable, "-m", "ottla", "sql", "--stop"]
        return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, env=self.variables, check=True).stdout

    def keeper(self) -> int:
        return int(self._lock.read_text())

    def java(self) -> int:
        return next(pid for pid in children(self.keeper()) if "java" in Path(f"/proc/{pid}/cmdline").read_text())


def children(pid: int) -> list[int]:
    return [int(each) for path in Path(f"/proc/{pid}/task").glob("*/children") for each in path.read_text().split()]


@pytest.fixture
def calls(tmp_path: Path) -> Iterator[Calls]:
    with Broker() as broker:
        fill(broker, "orders", 10)
        made = Calls(broker, tmp_path)
        try:
            yield made
        finally:
            made.stop()


def wait_until_gone(pid: int) -> None:
    end_s = time.monotonic() + LIMIT_S
    while Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_text():
        assert time.monotonic() < end_s, f"the process {pid} has not ended"
        time.sleep(0.05)


@pytest.mark.slow
def test_calls_share_spark_and_nothing_else(calls: Calls) -> None:
    count = "SELECT count(*) AS n FROM orders"
    assert calls("CREATE TEMP VIEW v AS SELECT 1 AS one; SELECT * FROM v") == "one\n1\n"
    keeper, java = calls.keeper(), calls.java()
    assert calls(count) == "n\n10\n"
    assert calls.keeper() == keeper
    missing = subprocess.run([*calls.command, "SELECT * FROM v"], capture_output=True, text=True, env=calls.variables)
    assert "there is no stream, table or topic v" in missing.stderr
    # A setting of Spark, and a table that would stay in it: these start a Spark of their own.
    assert calls("SET 'spark.sql.shuffle.partitions'='7'; SELECT count(*) AS n FROM orders") == "n\n10\n"
    # Two at the same time: one of them has its own.
    both = [subprocess.Popen([*calls.command, count], stdout=subprocess.PIPE, env=calls.variables) for _ in range(2)]
    assert [each.communicate(timeout=LIMIT_S)[0] for each in both] == [b"n\n10\n"] * 2
    assert (calls.keeper(), calls.java()) == (keeper, java)
    # Its JVM is gone: the next call starts another.
    os.kill(java, signal.SIGKILL)
    assert calls(count) == "n\n10\n"
    wait_until_gone(keeper)
    assert calls("SELECT 1 AS one") == "one\n1\n"
    second = calls.keeper()
    assert second != keeper
    calls.variables["HTTPS_PROXY"] = "http://127.0.0.1:1"  # another environment
    assert calls("SELECT 1 AS one") == "one\n1\n"
    wait_until_gone(second)
    java = calls.java()
    assert calls.stop() == "Spark has ended.\n"
    wait_until_gone(java)
    assert calls.stop() == "There is no Spark that was left behind.\n"


@pytest.mark.slow
def test_ctrl_c_and_kills_end_a_query_and_spark_stays(calls: Calls) -> None:
    long = "SELECT count(*) FROM range(1000000000000) WHERE sha2(string(id), 256) = 'x'"
    assert calls("SELECT 1 AS one") == "one\n1\n"
    keeper, java = calls.keeper(), calls.java()
    for number in (signal.SIGINT, signal.SIGKILL):
        process = subprocess.Popen([*calls.command, long], stderr=subprocess.PIPE, env=calls.variables)
        wait_until_busy(java)
        process.send_signal(number)
        process.communicate(timeout=LIMIT_S)
        assert process.returncode == (130 if number == signal.SIGINT else -number)
        assert calls("SELECT count(*) AS n FROM orders") == "n\n10\n"
        assert (calls.keeper(), calls.java()) == (keeper, java)
        wait_until_idle(java)


@pytest.mark.slow
def test_select_whose_spark_is_lost_is_run_again(calls: Calls) -> None:
    long = "SELECT count(*) AS n FROM range(30000000) WHERE sha2(string(id), 256) = 'x'"
    assert calls("SELECT 1 AS one") == "one\n1\n"
    java = calls.java()
    process = subprocess.Popen([*calls.command, long], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=calls.variables)
    wait_until_busy(java)
    os.kill(java, signal.SIGKILL)
    assert process.communicate(timeout=LIMIT_S) == (b"n\n0\n", b"")


@pytest.mark.slow
def test_terminal_is_told_what_stays(calls: Calls) -> None:
    command = [each for each in calls.command if each != "--warm"]
    variables = {name: value for name, value in calls.variables.items() if name not in ("CI", "PYTEST_CURRENT_TEST")}
    first = Terminal([*command, "SELECT 6 * 7 AS answer"], variables)
    first.expect(r"answer\s+42\s")
    first.expect(r"\(Spark stays ready for 5 minutes, with some 0\.6 GB: `ottla sql --stop` ends it")
    assert first.end() == 0
    second = Terminal([*command, "SELECT 6 * 7 AS answer"], variables)
    second.expect(r"answer\s+42\s")
    assert second.end() == 0
    assert "stays" not in second.seen


def used_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_until_busy(pid: int) -> None:
    begin, end_s = used_s(pid), time.monotonic() + LIMIT_S
    while used_s(pid) < begin + 3:
        assert time.monotonic() < end_s, "no query has begun"
        time.sleep(0.05)


def wait_until_idle(pid: int) -> None:
    end_s = time.monotonic() + LIMIT_S
    while True:
        before = used_s(pid)
        time.sleep(2)
        if used_s(pid) - before < 0.3:
            return
        assert time.monotonic() < end_s, "the query goes on"
