"""The checklists of docs/operations.md, followed to the letter on three nodes, while a producer goes on.

`Site.do` runs a line only if the manual has it.
"""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.peers.topics import await_true
from tests.support.servers.kafka_server import HANG_S, free_ports

from ottla import Admin, Consumer, Producer
from ottla.errors import KafkaError
from ottla.ids import uuid_text

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[3]
MANUAL = (ROOT / "docs" / "operations.md").read_text()
CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"
TOPIC = "orders"
PROPERTIES = """\
process.roles=broker,controller
node.id={node}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers={controllers}
log.dirs={dirs}
metadata.log.dir={data}
default.replication.factor=3
min.insync.replicas=2
offsets.topic.num.partitions=6
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
"""


class Load:
    """A producer with acks=all that goes on until `stop`; it knows what was acknowledged."""

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._over = threading.Event()
        self.acknowledged = 0
        self.failures: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with Producer(self._servers, delivery_timeout_ms=60_000) as producer:
            while not self._over.is_set():
                try:
                    producer.send(TOPIC, str(self.acknowledged).encode()).result()
                except KafkaError as failure:
                    self.failures.append(failure)
                    return
                self.acknowledged += 1
                time.sleep(0.005)  # a load, not a flood

    def stop(self) -> int:
        self._over.set()
        self._thread.join()
        assert not self.failures, self.failures
        return self.acknowledged


class Site:
    """Up to four nodes in one folder, their files, and a shell in which `ottla` is this one."""

    def __init__(self, folder: Path, disks: int = 1, release: str = "4.3") -> None:
        self.folder = folder
        ports = free_ports(8)
        self._ports = {node: (ports[node - 1], ports[node + 3]) for node in (1, 2, 3, 4)}
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._logged: dict[int, int] = {}
        controllers = ",".join(f"127.0.0.1:{self._ports[node][1]}" for node in (1, 2, 3))
        for node, (port, controller_port) in self._ports.items():
            data = folder / f"data-{node}"
            dirs = ",".join([str(data), *(f"{data}-{disk}" for disk in range(2, disks + 1))])
            (folder / f"server-{node}.properties").write_text(
                PROPERTIES.format(
                    node=node, port=port, controller_port=controller_port, controllers=controllers, data=data, dirs=dirs
                )
            )
        (folder / "bin").mkdir()
        tool = folder / "bin" / "ottla"
        tool.write_text(f'#!/bin/sh\nexec {sys.executable} -m ottla.cli.main "$@"\n')
        tool.chmod(0o755)
        self.servers = ",".join(f"127.0.0.1:{port}" for node, (port, _) in self._ports.items() if node <= 4)
        self._environment = {
            **os.environ,
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "OTTLA_BOOTSTRAP_SERVERS": self.servers,
        }
        ids = {node: uuid_text(os.urandom(16)) for node in (1, 2, 3)}  # type: ignore[arg-type]  # 16 bytes
        voters = ",".join(f"{node}@127.0.0.1:{self._ports[node][1]}:{ids[node]}" for node in ids)
        for node in (1, 2, 3):
            self.shell(
                f"ottla storage format -t {CLUSTER_ID} -c server-{node}.properties --initial-controllers {voters} -r {release}"
            )
        self.start(1, 2, 3)
        self.shell(f"ottla topics create {TOPIC} --partitions 6")

    def shell(self, line: str) -> str:
        done = subprocess.run(
            ["bash", "-ec", line],
            cwd=self.folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
        )
        assert done.returncode == 0, f"{line}: {done.stdout}\n{done.stderr}\n{self.logs()}"
        return done.stdout

    def do(self, line: str) -> str:
        """Run a line of the manual."""
        assert re.search(rf"(^ +|`){re.escape(line)}(`|$)", MANUAL, re.MULTILINE), f"the manual has no {line}"
        return self.shell(line.replace("CLUSTER_ID", CLUSTER_ID))

    def start(self, *nodes: int) -> None:
        """`ottla server start server-2.properties`, for each node."""
        for node in nodes:
            with open(self.folder / f"node-{node}.log", "ab") as log:
                self._logged[node] = log.tell()
                self._running[node] = subprocess.Popen(
                    ["ottla", "server", "start", f"server-{node}.properties", "--log-dir", f"logs-{node}"],
                    cwd=self.folder,
                    env=self._environment,
                    executable=self.folder / "bin" / "ottla",
                    stdout=log,
                    stderr=log,
                )
        for node in nodes:
            await_true(lambda node=node: self._is_up(node), f"node {node} to be up")

    def _is_up(self, node: int) -> bool:
        assert self._running[node].poll() is None, self.logs()
        return "is up at" in (self.folder / f"node-{node}.log").read_text()[self._logged[node] :]

    def stop(self, *nodes: int, number: signal.Signals = signal.SIGTERM) -> None:
        for node in nodes:
            self._running[node].send_signal(number)
        for node in nodes:
            code = self._running.pop(node).wait(HANG_S)
            assert code in (0, -number), self.logs()

    def logs(self) -> str:
        return "\n".join(f"{each.name}: {each.read_text()[-1500:]}" for each in sorted(self.folder.glob("node-*.log")))

    def until_healthy(self) -> None:
        self.do("until ottla cluster describe --check; do sleep 2; done")

    def admin(self) -> Admin:
        return Admin(self.servers, request_timeout_ms=10_000)

    def replicas_on(self, node: int) -> int:
        with self.admin() as admin:
            topics = admin.describe_topics(list(admin.list_topics(include_internal=True)))
            return sum(node in each.replicas for topic in topics.values() for each in topic.partitions)

    def voters(self) -> set[int]:
        with self.admin() as admin:
            return {each.id for each in admin.describe_metadata_quorum().voters}

    def read(self) -> set[bytes]:
        """All values of the topic."""
        with Consumer(self.servers, auto_offset_reset="earliest") as consumer:
            places = [(TOPIC, partition) for partition in range(6)]
            consumer.assign(places)
            ends = sum(consumer.end_offsets(places).values())
            values: list[bytes] = []
            await_true(lambda: values.extend(each.value for each in consumer.poll(1)) or len(values) >= ends, "all records")
        return set(values)

    def check(self, load: Load) -> None:
        """Nothing that was acknowledged is missing."""
        count = load.stop()
        assert count > 0
        assert {str(number).encode() for number in range(count)} <= self.read()

    def close(self) -> None:
        for process in self._running.values():
            process.kill()
            process.wait()


@contextmanager
def running(folder: Path, disks: int = 1, release: str = "4.3") -> Iterator[Site]:
    made = Site(folder, disks, release)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with running(tmp_path) as made:
        yield made


def test_rolling_restart(site: Site) -> None:
    load = Load(site.servers)
    for node in (1, 2, 3):
        site.do("ottla cluster describe --check")
        site.stop(node)
        site.start(node)
        site.until_healthy()
    site.do("ottla elect-leaders --all")
    site.check(load)


def test_a_node_is_added_and_removed(site: Site) -> None:
    load = Load(site.servers)
    site.do("ottla cluster id")
    site.do("ottla storage format -t CLUSTER_ID -c server-4.properties --no-initial-controllers")
    site.start(4)
    assert "4" in site.do("ottla brokers list")
    site.do("ottla reassign generate --brokers 1,2,3,4 > plan.json")
    site.do("ottla reassign execute plan.json --throttle 50000000 --wait > before.json")
    site.do("ottla quorum add --server-config server-4.properties")
    site.do("ottla cluster describe --check")
    assert site.replicas_on(4) > 0
    assert site.voters() == {1, 2, 3, 4}

    site.do("ottla reassign generate --brokers 1,2,3 > plan.json")
    site.do("ottla reassign execute plan.json --throttle 50000000 --wait > before.json")
    assert site.replicas_on(4) == 0
    site.do("ottla quorum remove 4 --yes")
    site.stop(4)
    site.do("ottla cluster unregister 4 --yes")
    site.do("ottla cluster describe --check")
    assert site.voters() == {1, 2, 3}
    site.check(load)


def test_a_dead_node_is_replaced_with_the_same_id(site: Site) -> None:
    load = Load(site.servers)
    site.stop(3, number=signal.SIGKILL)
    site.shell("rm -r data-3")
    site.do("ottla quorum remove 3 --yes")
    site.do("ottla storage format -t CLUSTER_ID -c server-3.properties --no-initial-controllers")
    site.start(3)
    site.until_healthy()
    site.do("ottla quorum add --server-config server-3.properties")
    site.do("ottla cluster describe --check")
    assert site.voters() == {1, 2, 3}
    site.check(load)


def test_a_dead_node_is_replaced_with_another_id(site: Site) -> None:
    load = Load(site.servers)
    site.stop(3, number=signal.SIGKILL)
    site.do("ottla storage format -t CLUSTER_ID -c server-4.properties --no-initial-controllers")
    site.start(4)
    site.do("ottla quorum remove 3 --yes")
    site.do("ottla quorum add --server-config server-4.properties")
    site.do("ottla reassign generate --brokers 1,2,4 > plan.json")
    site.do("ottla reassign execute plan.json --throttle 50000000 --wait > before.json")
    site.do("ottla cluster unregister 3 --yes")
    site.do("ottla cluster describe --check")
    assert site.voters() == {1, 2, 4}
    site.check(load)


def test_a_stopped_cluster_is_backed_up_and_restored(site: Site) -> None:
    load = Load(site.servers)
    await_true(lambda: load.acknowledged > 50, "some records")
    before = load.stop()
    site.stop(1, 2, 3)
    for node in (1, 2, 3):
        line = "cp -a data-1 backup-1"
        assert f"    {line}\n" in MANUAL
        site.shell(line.replace("-1", f"-{node}"))
    site.start(1, 2, 3)
    site.shell(f"ottla topics delete {TOPIC} --yes")
    site.stop(1, 2, 3)
    for node in (1, 2, 3):
        line = "rm -r data-1 && cp -a backup-1 data-1"
        assert f"    {line}\n" in MANUAL
        site.shell(line.replace("-1", f"-{node}"))
    site.start(1, 2, 3)
    site.until_healthy()
    assert site.read() == {str(number).encode() for number in range(before)}


def test_features_are_upgraded(tmp_path: Path) -> None:
    with running(tmp_path, release="4.2") as site:
        assert "FinalizedVersionLevel: 4.2-IV1" in site.do("ottla features describe")
        site.do("ottla features upgrade --release-version 4.3 --dry-run")
        site.do("ottla features upgrade --release-version 4.3")
        assert "FinalizedVersionLevel: 4.3-IV0" in site.do("ottla features describe")


def test_a_broken_disk_is_replaced(tmp_path: Path) -> None:
    with running(tmp_path, disks=2) as site:
        load = Load(site.servers)
        site.stop(2)
        held = list((tmp_path / "data-2-2").glob(f"{TOPIC}-*"))
        assert held
        site.shell("rm -r data-2-2")
        site.do("ottla storage format -t CLUSTER_ID -c server-2.properties --ignore-formatted --no-initial-controllers")
        site.start(2)
        site.until_healthy()
        site.check(load)


def test_a_survivors_metadata_takes_the_place_of_a_lost_controllers(site: Site) -> None:
    load = Load(site.servers)
    await_true(lambda: load.acknowledged > 50, "some records")
    site.shell("cp data-2/meta.properties meta-2.properties")
    count = load.stop()
    site.until_healthy()
    site.stop(2, 3, number=signal.SIGKILL)
    site.shell("rm -r data-2 data-3")
    site.do("mkdir data-2")
    site.do("cp meta-2.properties data-2/meta.properties")
    site.do("cp -a data-1/bootstrap.checkpoint data-1/__cluster_metadata-0 data-2/")
    site.do("rm data-2/__cluster_metadata-0/quorum-state")
    site.start(2)
    site.do("ottla quorum remove 3 --yes")
    site.do("ottla storage format -t CLUSTER_ID -c server-3.properties --no-initial-controllers")
    site.start(3)
    site.until_healthy()
    site.do("ottla quorum add --server-config server-3.properties")
    assert {str(number).encode() for number in range(count)} <= site.read()
