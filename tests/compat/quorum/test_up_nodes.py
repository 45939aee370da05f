"""`ottla up --nodes 3`: one command runs a cluster, and leaves no process behind however it ends."""

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.support.peers.topics import await_true
from tests.support.servers.kafka_server import HANG_S
from tests.support.servers.ottla_server import OTTLA, run_ottla

from ottla import Consumer, Producer


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return not Path(f"/proc/{pid}/stat").exists() or Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def complaints(stderr: str) -> list[str]:
    """What a quiet command printed, without what only a busy machine causes: a loop that was held, and nodes that were up
    already, the last of which leave without a controller."""
    busy = (" WARNING  node: leaving the cluster", " WARNING  loop: the event loop was held")
    return [line for line in stderr.splitlines() if not any(each in line for each in busy)]


@contextmanager
def up(data: Path) -> Iterator[tuple["subprocess.Popen[str]", dict[str, Any]]]:
    """Three nodes that are ready."""
    command = [*OTTLA, "up", "--nodes", "3", "--port", "0", "--data", str(data), "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    pids: list[int] = []
    try:
        assert process.stdout is not None
        facts = json.loads(process.stdout.readline())
        pids = [each["pid"] for each in facts["nodes"]]
        yield process, facts
    finally:
        process.kill()
        process.communicate()
        for pid in filter(is_alive, pids):
            os.kill(pid, signal.SIGKILL)


def test_the_cluster_serves_and_stops_with_an_interrupt(tmp_path: Path) -> None:
    with up(tmp_path) as (process, facts):
        servers, pids = facts["bootstrap_servers"], [each["pid"] for each in facts["nodes"]]
        assert len(servers.split(",")) == len(set(pids)) == 3
        assert run_ottla("topics", "create", "orders", "--partitions", 3, "--bootstrap-server", servers).returncode == 0
        with Producer(servers) as producer:
            for number in range(30):
                producer.send("orders", str(number).encode(), partition=number % 3)
        values: list[bytes | None] = []
        with Consumer(servers, auto_offset_reset="earliest") as consumer:
            consumer.assign([("orders", partition) for partition in range(3)])
            await_true(lambda: values.extend(each.value for each in consumer.poll(1)) or len(values) >= 30, "all records")
        assert sorted(values, key=str) == sorted((str(number).encode() for number in range(30)), key=str)
        process.send_signal(signal.SIGINT)
        _, complained = process.communicate(timeout=HANG_S)
        assert process.returncode == 0
        assert not any(map(is_alive, pids))
        assert "leaving the cluster without" not in complained


@pytest.mark.parametrize("victim", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_a_node_that_is_killed_is_reported_and_the_others_go_on(tmp_path: Path, victim: int) -> None:
    with up(tmp_path) as (process, facts):
        pids = [each["pid"] for each in facts["nodes"]]
        os.kill(pids[victim], signal.SIGKILL)
        assert process.stderr is not None
        line = next(each for each in process.stderr if "has ended" in each)
        assert line.startswith(
            f"ottla: node {victim + 1} has ended (signal SIGKILL). Its partitions are led by their other replicas"
        )
        left = [each["bootstrap_servers"] for number, each in enumerate(facts["nodes"]) if number != victim]
        assert run_ottla("topics", "create", "after", "--bootstrap-server", ",".join(left)).returncode == 0
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=HANG_S)
        assert process.returncode == 0
        assert not any(map(is_alive, pids))


def test_no_node_outlives_a_parent_that_is_killed(tmp_path: Path) -> None:
    with up(tmp_path) as (process, facts):
        pids = [each["pid"] for each in facts["nodes"]]
        process.kill()
        await_true(lambda: not any(map(is_alive, pids)), "the nodes end with their parent")
    assert all((tmp_path / f"node-{node}" / ".kafka_cleanshutdown").exists() for node in (1, 2, 3))


@pytest.mark.slow
def test_a_paused_node_ends_cleanly_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    with up(tmp_path) as (process, facts):
        pids = [each["pid"] for each in facts["nodes"]]
        os.kill(pids[1], signal.SIGSTOP)
        process.kill()
        await_true(lambda: not any(map(is_alive, pids)), "the nodes end with their parent")
    assert all((tmp_path / f"node-{node}" / ".kafka_cleanshutdown").exists() for node in (1, 2, 3))


@pytest.mark.slow
def test_an_interrupt_ends_a_paused_node_too(tmp_path: Path) -> None:
    with up(tmp_path) as (process, facts):
        pids = [each["pid"] for each in facts["nodes"]]
        os.kill(pids[1], signal.SIGSTOP)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=HANG_S)
        assert process.returncode == 0
        assert not any(map(is_alive, pids))


def test_nodes_end_with_their_parent_even_while_they_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTTLA_TEST_MARK", str(tmp_path))
    command = [*OTTLA, "up", "--nodes", "3", "--port", "0", "--data", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        assert "node " in process.stderr.readline()  # the nodes run, and wait for a leader
        await_true(lambda: len(started_with(f"OTTLA_TEST_MARK={tmp_path}")) == 5, "the command, its guard and its three nodes")
    finally:
        process.kill()
        process.communicate()
    await_true(lambda: not started_with(f"OTTLA_TEST_MARK={tmp_path}"), "the nodes end with their parent")


def test_an_interrupt_during_the_start_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTTLA_TEST_MARK", str(tmp_path))
    command = [*OTTLA, "up", "--nodes", "3", "--port", "0", "--data", str(tmp_path), "--quiet"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        await_true(lambda: len(started_with(f"OTTLA_TEST_MARK={tmp_path}")) == 5, "the command, its guard and its three nodes")
        process.send_signal(signal.SIGINT)
        said, complained = process.communicate(timeout=HANG_S)
        assert (said, complaints(complained)) == ("", [])
        assert process.returncode == 0
        assert not started_with(f"OTTLA_TEST_MARK={tmp_path}")
    finally:
        process.kill()
        process.wait()


def first_of_free_ports() -> int:
    """A port for node 1: those of three nodes and their controllers are free, and below those that the system hands out."""
    begin = 20_000 + os.getpid() % 600 * 3  # another run of this test, at the same time, begins elsewhere
    for first in (*range(begin, 22_000, 3), *range(20_000, begin, 3)):
        with ExitStack() as held:
            try:
                for port in (*range(first, first + 3), *range(first + 10_000, first + 10_003)):
                    held.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return first
    raise AssertionError("no six free ports from 20000 on")


def started_with(mark: str) -> list[str]:
    """The processes whose environment has `mark`."""
    found = []
    for each in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if mark.encode() in each.read_bytes():
                found.append(each.parent.name)
    return found


@pytest.mark.slow
def test_a_taken_port_is_named_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTTLA_TEST_MARK", str(tmp_path))
    first = first_of_free_ports()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", first + 1))
        taken.listen()
        done = run_ottla("up", "--nodes", 3, "--port", first, "--data", tmp_path, "--quiet")
    assert done.returncode == 1
    assert done.stdout == ""
    (sentence,) = complaints(done.stderr)
    assert sentence.startswith(f"ottla: node 2: cannot listen on 127.0.0.1, port {first + 1}: the port is taken")
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"
    assert not started_with(f"OTTLA_TEST_MARK={tmp_path}")


def act(data: Path, *arguments: object) -> str:
    """What an action on the running command says."""
    done = run_ottla("up", *arguments, "--data", data)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_single_nodes_are_restarted_stopped_started_and_added(tmp_path: Path) -> None:
    def states() -> dict[int, str]:
        shown = run_ottla("up", "status", "--data", tmp_path, "--json")
        return {each["node_id"]: each["state"] for each in json.loads(shown.stdout)}

    with up(tmp_path) as (process, facts):
        pid = facts["nodes"][1]["pid"]
        servers = facts["bootstrap_servers"]
        assert Path(f"/proc/{pid}/comm").read_text() == "ottla node 2\n"
        assert Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0").endswith("ottla node 2")
        assert (tmp_path / ".ottla-up.sock").stat().st_mode & 0o777 == 0o600
        said = act(tmp_path, "restart", 2)
        assert "Node 2 has stopped (exit code 0).\nNode 2 is up at 127.0.0.1:" in said
        assert not is_alive(pid)
        act(tmp_path, "stop", 2)
        assert states() == {1: "up", 2: "stopped", 3: "up"}
        assert run_ottla("up", "status", "--data", tmp_path).returncode == 1
        act(tmp_path, "start", 2)
        twice = run_ottla("up", "start", 2, "--data", tmp_path)
        assert (twice.returncode, "node 2 is running, as process" in twice.stderr) == (1, True)
        unknown = run_ottla("up", "stop", 9, "--data", tmp_path)
        assert (unknown.returncode, unknown.stderr) == (1, "ottla: there is no node 9: the nodes are 1, 2, 3\n")
        assert "Node 4 is up at 127.0.0.1:" in act(tmp_path, "add")
        assert states() == dict.fromkeys((1, 2, 3, 4), "up")
        brokers = json.loads(run_ottla("brokers", "list", "--json", "--bootstrap-server", servers).stdout)
        assert [each["broker"] for each in brokers] == [1, 2, 3, 4]
        pids = [each["pid"] for each in json.loads(act(tmp_path, "status", "--json"))]
        process.kill()
        await_true(lambda: not any(map(is_alive, pids)), "the nodes end with their parent, also those that came later")
    gone = run_ottla("up", "status", "--data", tmp_path)
    assert (gone.returncode, "no `ottla up` is ready on" in gone.stderr) == (1, True)
    with up(tmp_path) as (process, facts):
        assert [each["node_id"] for each in facts["nodes"]] == [1, 2, 3, 4]
        assert "Stopping all 4 nodes." in act(tmp_path, "stop")
        process.communicate(timeout=HANG_S)
        assert process.returncode == 0
        assert not (tmp_path / ".ottla-up.sock").exists()
