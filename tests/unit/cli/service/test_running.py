"""A node as a service: its unit as `ottla service install` writes it, run by a supervisor that plays systemd's part."""

import ctypes.util
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.conftest import Unavailable
from tests.support.servers.apache_kafka import CLUSTER_ID
from tests.support.servers.kafka_server import default_properties, free_ports, properties_text
from tests.support.servers.ottla_server import run_ottla
from tools.golden_directories import SETTINGS, find_all, write_workload
from tools.supervise import Supervised, Unit

from ottla import Admin, Producer
from ottla.errors import OttlaError

HOLDING = """
import signal, time
def hold_the_loop(*_):
    time.sleep(600)
signal.signal(signal.SIGUSR1, hold_the_loop)
"""
"""A sitecustomize.py: a signal makes the main thread, which runs the loop, sleep."""


FILTERING = """
import ctypes, ctypes.util, os, sys
library = ctypes.CDLL(ctypes.util.find_library("seccomp"))
library.seccomp_init.restype = ctypes.c_void_p
context = ctypes.c_void_p(library.seccomp_init(0x00050000 | 1))  # EPERM
with open(sys.argv[1]) as names:
    for name in names.read().split():
        number = library.seccomp_syscall_resolve_name(name.encode())
        if number != -1:
            library.seccomp_rule_add(context, 0x7FFF0000, number, 0)
assert library.seccomp_load(context) == 0
os.execvp(sys.argv[2], sys.argv[2:])
"""
"""Runs a program with the system calls that a file names, as SystemCallFilter= does."""


def allowed_calls(unit: Unit) -> set[str]:
    """The system calls that a unit allows, as systemd-analyze names them."""
    allowed: set[str] = set()
    for line in unit.values["SystemCallFilter"]:
        calls = members(line.lstrip("~"))
        allowed = allowed - calls if line.startswith("~") else allowed | calls
    return allowed | members("@default")


def members(group: str) -> set[str]:
    done = subprocess.run(["systemd-analyze", "syscall-filter", group], capture_output=True, text=True, check=True)
    words = [line.strip() for line in done.stdout.splitlines()[1:] if line.strip() and not line.strip().startswith("#")]
    return {call for word in words for call in (members(word) if word.startswith("@") else [word])}


class Node:
    """Settings, data and unit of a node, below a folder as `--root` has it."""

    def __init__(self, root: Path, **settings: object) -> None:
        self.root = root
        ports = free_ports(2)
        self.properties = default_properties("/var/lib/ottla", *ports)
        self.properties |= {name.replace("_", "."): value for name, value in settings.items()}
        self.bootstrap = f"127.0.0.1:{ports[0]}"
        self.controller_port = ports[1]
        self.log = root / "log.txt"

    def format(self, *, is_voter: bool = True) -> None:
        settings = self.root / "format.properties"
        settings.write_text(properties_text(self.properties | {"log.dirs": self.root / "var/lib/ottla"}))
        options = ["--standalone"] if is_voter else []
        done = run_ottla("storage", "format", "-t", CLUSTER_ID, "-c", settings, *options)
        assert done.returncode == 0, done.stderr

    def unit(self, **changes: str) -> Unit:
        """The unit, with other values of some lines."""
        settings = self.root / "etc/ottla/server.properties"
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text(properties_text(self.properties))
        done = run_ottla("service", "install", "--root", self.root)
        assert done.returncode == 0, done.stderr
        unit = Unit.read(self.root / "etc/systemd/system/ottla.service").below(self.root)
        unit.values |= {name: [value] for name, value in changes.items()}
        return unit

    @contextmanager
    def running(
        self, environment: dict[str, str] | None = None, *, abstract: bool = False, **changes: str
    ) -> Iterator[Supervised]:
        with open(self.log, "ab") as log:
            service = Supervised(self.unit(**changes), environment=environment, abstract=abstract, output=log.fileno())
            try:
                with service:
                    yield service
            except BaseException as error:
                error.add_note(self.log.read_text()[-3000:])
                raise


@pytest.fixture
def node(tmp_path: Path) -> Node:
    made = Node(tmp_path)
    made.format()
    return made


def test_ready_when_it_serves_and_a_stop_ends_with_zero(node: Node) -> None:
    with node.running(abstract=True, WatchdogSec="1") as service:
        service.wait_ready()
        with Admin(node.bootstrap) as admin:
            assert [each.is_fenced for each in admin.describe_cluster().nodes.values()] == [False]
        assert service.statuses[0] in ("locking log directories", "reading the metadata log")
        assert service.statuses[-1].startswith("node 1 of cluster ")
        service.wait_until(lambda: len(service.told("WATCHDOG")) > 4, "the watchdog is fed")
        service.reload()
        service.wait_until(lambda: len(service.told("READY")) == 2, "READY=1 after a reload")
        assert "MONOTONIC_USEC" in next(each.fields for each in service.messages if "RELOADING" in each.fields)
        assert service.stop() == 0
        assert "STOPPING" in service.messages[-1].fields
        assert service.foreign_messages == 0
    assert "SIGTERM: stopping" in node.log.read_text()


def test_a_start_that_is_refused_says_why(node: Node, tmp_path: Path) -> None:
    (tmp_path / "var/lib/ottla/meta.properties").unlink()
    with node.running(RestartSec="0.1", Environment="") as service:
        service.wait_until(lambda: any("format it first" in each for each in service.statuses), "the reason as the status")
        service.wait_until(lambda: len(service.exit_codes) == 2, "started again, and refused again")
        assert service.exit_codes == [1, 1]


@pytest.mark.slow  # writes 240 MB
def test_a_killed_node_is_started_again_and_tells_how_its_recovery_goes(node: Node) -> None:
    """The supervisor starts it again; meanwhile the start takes longer than TimeoutStartSec, and is not cut short."""
    node.properties["num.recovery.threads.per.data.dir"] = 1
    with node.running(RestartSec="0.1", TimeoutStartSec="20") as service:
        service.wait_ready()
        with Admin(node.bootstrap) as admin:
            admin.create_topics({"orders": 30})
        with Producer(node.bootstrap, linger_ms=5) as producer:
            for number in range(240):
                producer.send("orders", b"x" * 1_000_000, partition=number % 30)
            producer.flush()
        killed = service.pid
        service.process.kill()
        service.wait_until(lambda: service.pid != killed and service.is_ready, "ready again after SIGKILL")
        recovering = [each for each in service.statuses if each.startswith("recovering ")]
        assert recovering, service.statuses
        opened = [int(each.split()[1].split("/")[0]) for each in recovering]
        assert opened == sorted(opened)
        assert all(each.endswith("/30 logs") for each in recovering), recovering
        ready_s = service.told("READY")[0]
        assert all(each < ready_s for each in service.told("EXTEND_TIMEOUT_USEC"))
        assert service.told("EXTEND_TIMEOUT_USEC")
        with Admin(node.bootstrap) as admin:
            ends = admin.list_offsets({("orders", each): "latest" for each in range(30)})
        assert [found.offset for found in ends.values()] == [8] * 30
        assert service.exit_codes == [-signal.SIGKILL]
        assert service.stop() == 0


@pytest.mark.slow  # waits for a watchdog
def test_a_held_loop_is_silent_and_the_node_is_ended_with_its_stack_and_started_again(node: Node, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(HOLDING)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    with node.running({"PYTHONPATH": path}, WatchdogSec="2", RestartSec="0.1") as service:
        service.wait_ready()
        service.wait_until(lambda: len(service.told("WATCHDOG")) > 3, "the watchdog is fed")
        held = service.pid
        service.process.send_signal(signal.SIGUSR1)
        service.wait_until(lambda: service.pid != held and service.is_ready, "started again")
        assert service.watchdog_kills == 1
        assert service.exit_codes == [-signal.SIGABRT]
        assert service.stop() == 0
    assert "in hold_the_loop" in node.log.read_text(), "the journal shows where the loop was"


@pytest.mark.slow  # a load
def test_a_stop_under_load_ends_with_zero_and_keeps_what_was_acknowledged(node: Node) -> None:
    acknowledged, stopping = [], threading.Event()

    def load() -> None:
        with Producer(node.bootstrap, delivery_timeout_ms=3000, request_timeout_ms=1000) as producer:
            number = 0
            while not stopping.is_set():
                sent = [producer.send("orders", str(each).encode()) for each in range(number, number + 500)]
                number += len(sent)
                for each in sent:
                    try:
                        acknowledged.append(each.result())
                    except OttlaError:
                        return

    with node.running() as service:
        service.wait_ready()
        with Admin(node.bootstrap) as admin:
            admin.create_topics({"orders": 1})
        loading = threading.Thread(target=load)
        loading.start()
        while len(acknowledged) < 5000:
            time.sleep(0.01)
        assert service.stop() == 0
        stopping.set()
        loading.join()
    with node.running() as service:
        service.wait_ready()
        assert not [each for each in service.statuses if each.startswith("recovering ")]
        with Admin(node.bootstrap) as admin:
            end = admin.list_offsets({("orders", 0): "latest"})["orders", 0].offset
        assert end > max(each.offset for each in acknowledged)
        assert service.stop() == 0


@pytest.mark.slow  # two nodes
def test_a_broker_is_not_ready_before_a_controller_has_unfenced_it(tmp_path: Path) -> None:
    (tmp_path / "controller").mkdir()
    (tmp_path / "broker").mkdir()
    controller = Node(tmp_path / "controller", process_roles="controller", node_id=2)
    controller.properties["listeners"] = f"CONTROLLER://127.0.0.1:{controller.controller_port}"
    controller.format()
    broker = Node(tmp_path / "broker", process_roles="broker")
    broker.properties["listeners"] = f"PLAINTEXT://{broker.bootstrap}"
    broker.properties["controller.quorum.bootstrap.servers"] = controller.properties["controller.quorum.bootstrap.servers"]
    broker.format(is_voter=False)
    with broker.running() as service:
        service.wait_until(lambda: "waiting for a controller" in service.statuses, "it waits")
        assert not service.is_ready
        with controller.running() as leading:
            leading.wait_ready()
            service.wait_ready()
            with Admin(broker.bootstrap) as admin:
                assert [each.is_fenced for each in admin.describe_cluster().nodes.values()] == [False]
            assert service.stop() == 0
            assert leading.stop() == 0


@pytest.mark.slow  # systemd-analyze, and a large workload
def test_a_node_works_with_the_system_calls_of_its_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None or ctypes.util.find_library("seccomp") is None:
        raise Unavailable("needs systemd-analyze and libseccomp: Debian has them in the packages systemd and libseccomp2")
    node = Node(tmp_path, **{name.replace(".", "_"): value for name, value in SETTINGS.items()})
    node.format()
    unit = node.unit()
    allowed = allowed_calls(unit)
    assert "openat" in allowed
    assert "chown" not in allowed
    (tmp_path / "allowed").write_text("\n".join(sorted(allowed)))
    (tmp_path / "filter.py").write_text(FILTERING)
    command = f"{sys.executable} {tmp_path}/filter.py {tmp_path}/allowed {unit.get('ExecStart')}"
    with node.running(ExecStart=command) as service:
        service.wait_ready()
        status = dict(line.split(":", 1) for line in Path(f"/proc/{service.pid}/status").read_text().splitlines())
        assert status["Seccomp"].strip() == "2"
        write_workload(node.bootstrap)
        expected = find_all(node.bootstrap)
        assert service.stop() == 0
    with node.running(ExecStart=command) as service:
        service.wait_ready()
        assert find_all(node.bootstrap)["acls"] == expected["acls"]
        assert service.stop() == 0
    said = node.log.read_text()
    assert "Operation not permitted" not in said
    assert "ERROR" not in said
