"""`ottla check` as a user runs it, on the machine of the test."""

from __future__ import annotations

import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.servers.ottla_cli import run_cli

from ottla.broker.checks.table import AT_START, CHECKS
from ottla.cli.check import measure
from ottla.cli.check.command import EPILOG
from ottla.cli.check.measure import DiskSpeed, judge
from ottla.cli.check.peer import Sizes, Way
from ottla.cli.check.peer import judge as judge_way
from ottla.cli.check.plan import Load, parse_size, plan_for
from ottla.env.system import Directory
from ottla.testing import Broker

FIELDS = {"id", "level", "current", "wanted", "why", "fix_now", "fix_for_good", "applies_in_container"}
OTTLA = [sys.executable, "-m", "ottla"]


def findings(*arguments: object, rc: tuple[int, ...] = (0, 1)) -> list[dict[str, Any]]:
    said = run_cli("check", *arguments, "--json")
    assert said.rc in rc, said.err
    found: list[dict[str, Any]] = json.loads(said.out)
    return found


def one(found: list[dict[str, Any]], id: str) -> dict[str, Any]:
    return next(each for each in found if each["id"] == id)


def test_every_check_of_this_machine(tmp_path: Path) -> None:
    found = findings(tmp_path)
    assert {frozenset(each) for each in found} == {frozenset(FIELDS)}
    assert len({each["id"] for each in found}) >= 42
    assert f"{tmp_path} " in one(found, "free-space")["current"]
    assert list(tmp_path.iterdir()) == [], "nothing is changed"


def test_lines_in_a_pipe_and_groups_on_a_terminal(tmp_path: Path) -> None:
    lines = run_cli("check", tmp_path, "--all").lines
    assert all(re.match(r"(error|warn|note|unknown|fine|not-applicable): [a-z-]+: ", line) for line in lines)
    shown = run_cli("check", tmp_path, columns=100).out
    assert "(--all shows them)" in shown
    assert "Fine" not in shown
    assert max(map(len, shown.splitlines())) <= 100
    assert len(shown.splitlines()) < 60
    assert "\nFine\n" in run_cli("check", tmp_path, "--all", columns=100).out


def test_settings_of_a_file(tmp_path: Path) -> None:
    config = tmp_path / "server.properties"
    config.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
        "listeners=PLAINTEXT://:9092,CONTROLLER://127.0.0.1:9093\nadvertised.listeners=PLAINTEXT://kafka.invalid:9092\n"
        f"controller.quorum.bootstrap.servers=127.0.0.1:9093\nlog.dirs={tmp_path}/a,{tmp_path}/b\n"
    )
    found = findings("-c", config, rc=(1,))
    assert "kafka.invalid cannot be resolved" in one(found, "advertised-names")["current"]
    assert one(found, "shared-disks")["level"] == "note"


def test_nodes_of_an_up_are_found(tmp_path: Path) -> None:
    for name in ("node-1", "node-2"):
        (tmp_path / name).mkdir()
    assert "node-1 and" in one(findings(tmp_path), "shared-disks")["current"]


MISTAKES = [
    (["nowhere"], "does not exist"),
    (["{file}"], "is a file: give a server.properties with --config"),
    (["-c", "{file}"], "process.roles is not set"),
    ([".", "-c", "{file}"], "exclude each other"),
    (["--rate", "5MB"], "--rate is for --plan"),
    (["--plan"], "--plan needs a load"),
    (["--plan", "--rate", "fast"], "--rate does not understand 'fast'"),
    (["--plan", "--rate", "0"], "above 0"),
    (["--plan", "--rate", "5MB", "--retention", "long"], "--retention does not understand"),
    (["--plan", "--rate", "5MB", "--brokers", "2"], "cannot keep --replicas 3"),
    (["--peer", ":9092"], "write HOST or HOST:PORT"),
    (["--peer", "host:http"], "is no port"),
    (["--peer", "host:99999"], "is no port"),
    (["--command-config", "x"], "is for --peer"),
    (["--write", "{file}", "-c", "{good}"], "exists already"),
]


@pytest.mark.parametrize(("arguments", "says"), MISTAKES, ids=[" ".join(row[0]) for row in MISTAKES])
def test_what_cannot_be_run_is_code_2(tmp_path: Path, arguments: list[str], says: str) -> None:
    (tmp_path / "file").write_text("node.id=1\n")
    (tmp_path / "good").write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\nlisteners=PLAINTEXT://:0,CONTROLLER://:0\n"
        f"advertised.listeners=PLAINTEXT://localhost:0\ncontroller.quorum.bootstrap.servers=127.0.0.1:0\nlog.dirs={tmp_path}\n"
        "socket.receive.buffer.bytes=2000000000\n"
    )
    said = run_cli("check", *(each.format(file=tmp_path / "file", good=tmp_path / "good") for each in arguments))
    assert said.rc == 2, said.out
    assert says in said.err.replace("\n", " ")
    assert "Traceback" not in said.err


def test_the_kernels_settings_as_a_file(tmp_path: Path) -> None:
    config = tmp_path / "server.properties"
    config.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.listener.names=CONTROLLER\nlisteners=PLAINTEXT://:0,CONTROLLER://:0\n"
        f"advertised.listeners=PLAINTEXT://localhost:0\ncontroller.quorum.bootstrap.servers=127.0.0.1:0\nlog.dirs={tmp_path}/d\n"
        "socket.receive.buffer.bytes=2000000000\n"
    )
    if sys.platform != "linux":
        pytest.skip("sysctl.d is Linux's")
    said = run_cli("check", "-c", config, "--write", tmp_path / "60-ottla.conf", "--strict")
    assert said.rc == 1
    assert "net.core.rmem_max = 2000000000" in (tmp_path / "60-ottla.conf").read_text()
    assert "sysctl --system" in said.err


def test_disks_are_measured_and_nothing_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "SEQUENTIAL_S", 0.1)
    monkeypatch.setattr(measure, "FLUSHES", 40)
    found = findings(tmp_path, "--measure")
    assert re.search(r"an fsync takes [\d.]+ ms \(p50\), [\d.]+ ms \(p99\)", one(found, "fsync")["current"])
    assert "a second" in one(found, "disk-rate")["current"]
    assert list(tmp_path.iterdir()) == []


ROTATING = Directory(path="/d", existing="/d")


@pytest.mark.parametrize(("ms", "level"), [(1.0, "note"), (50.0, "warn"), (0.001, "note")])
def test_what_an_fsync_means(ms: float, level: str) -> None:
    first, rate = judge(ROTATING, DiskSpeed((ms,) * 100, 5e8))
    assert first.level.value == level
    assert ("power loss" in first.why) == (ms < 0.02)
    assert "500 MB a second" in rate.current


# -- another machine


@contextmanager
def listening() -> Iterator[str]:
    from tests.support.servers.kafka_server import free_ports

    (port,) = free_ports(1)
    process = subprocess.Popen(
        [*OTTLA, "check", "--listen", f"127.0.0.1:{port}"], stdout=subprocess.PIPE, text=True, env=unbuffered()
    )
    try:
        assert process.stdout is not None
        assert "ottla check --peer" in process.stdout.readline()
        yield f"127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(30) in (0, 130)


def unbuffered() -> dict[str, str]:
    return {**os.environ, "PYTHONUNBUFFERED": "1"}


def test_the_way_to_a_machine_that_listens() -> None:
    with listening() as address:
        found = findings("--peer", address, rc=(0,))
        again = findings("--peer", address, rc=(0,))
    assert (
        {each["id"] for each in found}
        == {"peer-latency", "peer-clock", "peer-mtu", "peer-rate"}
        == {each["id"] for each in again}
    )
    clock = re.search(r"([\d.,]+) ms (ahead|behind)", one(found, "peer-clock")["current"])
    assert clock is not None
    assert float(clock[1]) < 50, "one machine has one clock"


def test_the_way_to_a_broker() -> None:
    with Broker() as broker:
        found = findings("--peer", broker.bootstrap_servers, rc=(0,))
    assert re.search(r"takes [\d.]+ ms \(p50\)", one(found, "peer-latency")["current"])
    assert (one(found, "peer-clock")["level"], one(found, "peer-mtu")["level"]) == ("unknown", "fine")
    assert "ottla check --listen" in one(found, "peer-clock")["current"]


def test_nothing_that_listens_is_an_error() -> None:
    found = findings("--peer", "127.0.0.1:1", rc=(1,))
    assert (one(found, "peer")["level"], "--listen" in one(found, "peer")["fix_now"]) == ("error", True)


def test_something_else_that_listens(tmp_path: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            connection, _ = server.accept()
            connection.sendall(b"220 mail.example ESMTP\r\n")
            connection.close()

        thread = threading.Thread(target=greet)
        thread.start()
        said = run_cli("check", "--peer", f"127.0.0.1:{server.getsockname()[1]}")
        thread.join()
    assert said.rc == 2
    assert "neither `ottla check --listen` nor a broker" in said.err


WAYS = [
    (Way((90.0,)), "peer-latency", "warn", "one region"),
    (Way((1.0,), 500.0, 2.0), "peer-clock", "warn", "chronyd"),
    (Way((1.0,), 90.0, 2.0), "peer-clock", "fine", ""),
    (Way((1.0,), 150.0, 80.0), "peer-clock", "fine", ""),  # it may as well be the network
    (Way((1.0,), sizes=Sizes(1400, 1500, 1348)), "peer-mtu", "warn", "mtu 1400"),
    (Way((1.0,), sizes=Sizes(1500, 1500, 1200)), "peer-mtu", "warn", "mtu"),
    (Way((1.0,), sizes=Sizes(1500, 1500, 1448)), "peer-mtu", "fine", ""),
    (Way((1.0,), sizes=Sizes(65535, 65536, 32741)), "peer-mtu", "fine", ""),  # loopback
    (Way((1.0,), sizes=Sizes(1500, 1500, 1448), large_problem="no answer within 8 s"), "peer-mtu", "error", "tcp_mtu_probing"),
]


@pytest.mark.parametrize(("way", "id", "level", "fix"), WAYS)
def test_what_a_way_means(way: Way, id: str, level: str, fix: str) -> None:
    (found,) = [each for each in judge_way("b:1", way) if each.id == id]
    assert found.level.value == level
    assert fix in found.fix_now


# -- plans


def test_a_plan_of_a_load() -> None:
    plan = {each.id: each.value for each in plan_for(Load(60e6, 1_000, 86_400, 3, 2, 6))}
    assert plan["records_per_s"] == 60_000
    assert plan["partitions"] == 6
    assert plan["disk_bytes"] == pytest.approx(60e6 * 86_400 * 3 * 1.3 / 0.85 / 6)
    assert plan["network_in_bytes_per_s"] == 30e6
    assert plan["network_out_bytes_per_s"] == 60e6 * 4 / 6
    assert plan["memory_bytes"] == 30e6 * 30 + 35e6 + 3 * 6_500
    assert plan["open_files"] == 3 * 3 + 2_024


def test_a_plan_finds_the_number_of_brokers() -> None:
    assert {each.id: each.value for each in plan_for(Load(100e6))}["brokers"] == 6
    assert {each.id: each.value for each in plan_for(Load(1e3))}["brokers"] == 3


def test_a_plan_as_the_user_sees_it() -> None:
    arguments = ("check", "--plan", "--rate", "50MB", "--retention", "7d", "--consumers", "2")
    assert json.loads(run_cli(*arguments, "--json").out)["partitions"]["value"] == 6
    table = run_cli(*arguments, columns=120).out
    assert "Disk, each broker" in table
    assert "1.3 for compaction" in table
    assert any(line.startswith("Network out: 66.7 MB/s = rate × (3 replicas") for line in run_cli(*arguments).lines)


@pytest.mark.parametrize(
    ("text", "size"), [("512", 512), ("10kB", 10_000), ("1.5GiB", 1.5 * 2**30), ("50 MB/s", 50e6), ("2t", 2e12)]
)
def test_sizes(text: str, size: float) -> None:
    assert parse_size(text, "--rate") == size


# -- on a machine with bad settings


def in_process(*arguments: object, before: tuple[str, ...] = (), setup: Any = None) -> list[dict[str, Any]]:
    ran = subprocess.run(
        [*before, *OTTLA, "check", *map(str, arguments), "--json"],
        capture_output=True,
        text=True,
        preexec_fn=setup,
        check=False,
    )
    assert ran.returncode in (0, 1), ran.stderr
    found: list[dict[str, Any]] = json.loads(ran.stdout)
    return found


def test_a_low_limit_of_files(tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (200, 400))

    found = one(in_process(tmp_path, setup=limit), "open-files")
    assert (found["level"], "may open 400 files" in found["current"]) == ("error", True)


root_only = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0 or shutil.which("unshare") is None,
    reason="namespaces need Linux, root and unshare",
)


@root_only
def test_a_network_namespace_with_a_small_backlog(tmp_path: Path) -> None:
    script = 'echo 16 > /proc/sys/net/core/somaxconn && echo 4096 8192 16384 > /proc/sys/net/ipv4/tcp_rmem && exec "$@"'
    before = ("unshare", "-n", "sh", "-c", script, "sh")
    ran = in_process(tmp_path, before=before)
    backlog = one(ran, "listen-backlog")
    assert (backlog["level"], backlog["fix_now"]) == ("warn", "sysctl -w net.core.somaxconn=4096")
    assert "tcp_rmem ends at 16,384" in one(ran, "socket-buffers")["current"]


@root_only
def test_a_directory_in_memory_without_room(tmp_path: Path) -> None:
    script = f'mount -t tmpfs -o size=50m none {tmp_path} && exec "$@"'
    ran = in_process(tmp_path, before=("unshare", "-m", "sh", "-c", script, "sh"))
    assert "in memory (tmpfs)" in one(ran, "file-system")["current"]
    assert one(ran, "free-space")["level"] == "error"


@root_only
def test_a_control_group_with_limits(tmp_path: Path) -> None:
    group = Path(f"/sys/fs/cgroup/cpu/ottla-test-{os.getpid()}")
    try:
        group.mkdir()
        (group / "cpu.cfs_quota_us").write_text("20000")
    except OSError as error:
        pytest.skip(f"no control group of version 1 for processors: {error}")

    def enter() -> None:
        (group / "cgroup.procs").write_text(str(os.getpid()))

    try:
        found = [each for each in in_process(tmp_path, setup=enter) if each["id"] == "cpu-limit"]
    finally:
        group.rmdir()
    assert found[0]["current"] == "processor time is limited to 0.2 CPUs"


# -- the page

PAGE = (Path(__file__).parents[4] / "docs" / "check.md").read_text(encoding="utf-8")
COMMANDS = [shlex.split(line, comments=True)[1:] for line in re.findall(r"^ +(ottla check.*)$", PAGE, re.MULTILINE)]
EXAMPLES = [
    shlex.split(re.split(r" {3,}| \|", line)[0])[1:] for line in re.findall(r"^ +(ottla check.*)$", EPILOG, re.MULTILINE)
]


def test_the_commands_of_the_page_and_of_the_help_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(measure, "SEQUENTIAL_S", 0.1)
    monkeypatch.setattr(measure, "FLUSHES", 40)
    (tmp_path / "ottla-data").mkdir()
    assert run_cli("storage", "sample").rc == 0
    assert len(COMMANDS) >= 12
    with listening() as address, Broker() as broker:
        stand_ins = {"kafka-1.lan": address, "kafka-1.lan:9092": broker.bootstrap_servers}
        for command in [*COMMANDS, *EXAMPLES]:
            if "--listen" in command:
                continue  # it runs already
            (tmp_path / "60-ottla.conf").unlink(missing_ok=True)
            said = run_cli(*(stand_ins.get(word, word) for word in command))
            assert said.rc in (0, 1), (command, said.err)
            assert said.out, command


def test_the_page_names_every_check() -> None:
    rows = re.findall(r"^\| (`[a-z`, -]+`) \|.*\| (start|) ?\|$", PAGE, re.MULTILINE)
    named = {name: mark for names, mark in rows for name in re.findall(r"`([a-z-]+)`", names)}
    assert named.keys() >= {each.id for each in CHECKS}
    assert {name for name, mark in named.items() if mark} == {each.id for each in AT_START}


def test_every_check_that_can_warn_has_its_effect_or_says_why_not() -> None:
    effects = PAGE.partition("<!-- effects:begin -->")[2]
    warned = re.findall(r"^\| (`[a-z`, -]+`) \|.*(?:warning|error).*\|$", PAGE, re.MULTILINE)
    ids = {name for names in warned for name in re.findall(r"`([a-z-]+)`", names)} - {"peer", "peer-rate", "disk-rate"}
    assert {each for each in ids if f"`{each}`" not in effects} == {"log-directories"}, "its error is the row of `user`"
