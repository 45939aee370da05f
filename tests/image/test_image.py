"""The image as its users start it: plain, read-only, as any user, with files and volumes, and by testcontainers.

The root file system is what image/Containerfile makes; each container has its own namespaces and real users. Clients run in the
container's network.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.servers.image_containers import READY, Running, running
from tests.support.servers.kafka_server import HANG_S
from tools.image.run import Network

pytestmark = pytest.mark.slow

ANY_USER = "1234567:0"
"""As OpenShift chooses: a user id that the image has never heard of, in group 0."""


def volume(folder: Path, owner: tuple[int, int], mode: int) -> Path:
    """A folder of the host, to be mounted."""
    folder.mkdir(parents=True)
    os.chown(folder, *owner)
    folder.chmod(mode)
    return folder


def await_health(service: Running, check: Sequence[str]) -> None:
    deadline_s = time.monotonic() + HANG_S
    while (done := service.container.execute(*check)).returncode != 0:
        assert service.container.process.poll() is None, service.printed
        assert time.monotonic() < deadline_s, f"{done.stdout}\n{service.printed}"
        time.sleep(0.2)


@pytest.mark.parametrize("user", [None, ANY_USER])
@pytest.mark.parametrize("is_read_only", [True, False])
def test_image_without_a_setting_serves_clients(image: Path, tmp_path: Path, user: str | None, is_read_only: bool) -> None:
    with running(image, tmp_path, user=user, is_read_only=is_read_only) as node:
        node.await_line(READY)
        node.send_and_read()
        assert node.container.execute("ottla-health").returncode == 0
        assert node.container.execute("cat", "/proc/1/cmdline").stdout.startswith("/opt/ottla/bin/python")
        assert node.container.stop() == 0
        assert "node 1 has stopped" in node.printed


def test_data_outlives_the_container_and_its_user(image: Path, tmp_path: Path) -> None:
    data = volume(tmp_path / "data", (1000, 0), 0o2770)
    count = [*("kafka-get-offsets.sh", "--bootstrap-server", "localhost:9092", "--topic", "orders")]
    for user in ("1000:0", ANY_USER):
        with running(image, tmp_path, user=user, volumes={data: "/var/lib/kafka/data"}) as node:
            node.await_line(READY)
            if user == "1000:0":
                node.send_and_read()
            assert node.container.execute(*count).stdout == "orders:0:2\n"
            assert node.container.stop() == 0


@pytest.mark.parametrize(
    ("user", "command"),
    [("1000:0", r"chgrp -R 0 FOLDER && chmod -R g\+rwX FOLDER"), ("1000:1000", "chown -R 1000:1000 FOLDER")],
)
def test_volume_of_root_is_refused_with_the_command_that_helps(image: Path, tmp_path: Path, user: str, command: str) -> None:
    data = volume(tmp_path / "data", (0, 100), 0o755)
    with running(image, tmp_path, user=user, volumes={data: "/var/lib/kafka/data"}) as node:
        code, printed = node.await_end()
    assert code == 1
    assert re.search(rf"cannot write to /var/lib/kafka/data, which belongs to user 0 and group 100 .*`{command}`", printed)
    assert "Traceback" not in printed
    assert list(data.iterdir()) == []


def test_mounted_file_with_variables_over_it(image: Path, tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text("node.id=7\nnum.partitions=6\nlog.retention.hours=1\n")
    mounted = {tmp_path / "server.properties": "/mnt/shared/config/server.properties"}
    with running(image, tmp_path, volumes=mounted, environment={"KAFKA_NUM_PARTITIONS": "3"}, is_read_only=True) as node:
        assert "[KafkaServer id=7] started" in node.await_line(READY)
        described = node.container.execute(
            *("kafka-configs", "--bootstrap-server", "localhost:9092", "--describe", "--all", "--broker", "7")
        ).stdout
        assert re.search(r"num\.partitions=3\b", described)
        assert re.search(r"log\.retention\.hours=1\b", described)


def test_health_says_why_a_node_is_not_ready(image: Path, tmp_path: Path) -> None:
    """A node of three that is alone: alive, not ready."""
    voters = {"KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9093,2@127.0.0.1:9095,3@127.0.0.1:9096"}
    with running(image, tmp_path, environment=voters) as node:
        node.await_line("metrics are served")
        unready = node.container.execute("ottla-health")
        assert (unready.returncode, unready.stdout.startswith("the node is starting")) == (1, True)
        assert node.container.execute("ottla-health", "/healthz").returncode == 0
        assert node.container.stop() == 0


def test_registry_and_console_beside_the_node(image: Path, tmp_path: Path) -> None:
    asked = {"KAFKA_OTTLA_SCHEMA_REGISTRY_PORT": "8081", "KAFKA_OTTLA_CONSOLE_PORT": "8080"}
    with running(image, tmp_path, environment=asked, is_read_only=True, user=ANY_USER) as node:
        node.await_line(READY)
        await_health(node, ["ottla-health", "/subjects", "8081"])
        await_health(node, ["ottla-health", "/static/console.css", "8080"])
        assert node.container.stop() == 0


def test_kafkas_tools_have_kafkas_flags(image: Path, tmp_path: Path) -> None:
    with running(image, tmp_path) as node:
        node.await_line(READY)
        run = node.container.execute
        topics = ("kafka-topics.sh", "--bootstrap-server", "localhost:9092")
        assert (
            run("/opt/kafka/bin/kafka-topics.sh", *topics[1:], "--create", "--topic", "orders").stdout
            == "Created topic orders.\n"
        )
        assert run(*topics, "--list").stdout == "orders\n"
        sent = run("sh", "-c", "echo one coffee | kafka-console-producer --bootstrap-server localhost:9092 --topic orders")
        assert sent.returncode == 0, sent.stderr
        read = ("--topic", "orders", "--from-beginning", "--max-messages", "1")
        assert run("kafka-console-consumer", "--bootstrap-server", "localhost:9092", *read).stdout == "one coffee\n"
        assert run("ottla", "topics", "list").stdout.split() == ["orders"]


# -- compose files


def services_of(name: str) -> dict[str, dict[str, Any]]:
    """The services of a compose file, with the defaults of its variables."""
    text = (Path(__file__).parents[2] / "image" / "compose" / name).read_text()
    services: dict[str, dict[str, Any]] = yaml.safe_load(re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text))["services"]
    return services


def test_compose_file_of_one_node(image: Path, tmp_path: Path) -> None:
    service = services_of("one-node.yaml")["broker"]
    hosts = {"broker": "127.0.0.1"}
    options = {"hostname": service["hostname"], "hosts": hosts, "is_read_only": service["read_only"]}
    with running(image, tmp_path, environment=service["environment"], **options) as node:
        node.await_line(READY)
        node.send_and_read("localhost:9092")
        described = node.container.execute("ottla", "topics", "describe", "orders", "--bootstrap-server", "broker:19092")
        assert described.returncode == 0, described.stderr


def test_compose_file_of_three_nodes(image: Path, tmp_path: Path) -> None:
    """Three containers in a network, registry and console beside them; one node is killed, and nothing is lost."""
    services = services_of("three-nodes.yaml")
    hosts = {name: f"10.89.0.{number}" for number, name in enumerate(services, start=2)}
    beside = {name: services.pop(name) for name in ("registry", "console")}
    servers = ",".join(f"{name}:19092" for name in services)
    with ExitStack() as stack:
        network = stack.enter_context(Network())
        nodes = {}
        for name, service in services.items():
            options = {"hostname": service["hostname"], "hosts": hosts, "is_read_only": service["read_only"]}
            nodes[name] = stack.enter_context(running(image, tmp_path, environment=service["environment"], **options))
            nodes[name].container.attach(network, hosts[name])
        for node in nodes.values():
            node.await_line(READY)
        first, second, third = nodes.values()
        for name, service in beside.items():
            assert set(service["depends_on"]) == set(services)
            options = {"hostname": service["hostname"], "hosts": hosts, "is_read_only": service["read_only"]}
            started = stack.enter_context(running(image, tmp_path, service["command"], **options))
            started.container.attach(network, hosts[name])
            await_health(started, service["healthcheck"]["test"][1:])

        def run(*command: str, on: Running = first) -> str:
            done = on.container.execute(*command, timeout_s=HANG_S)
            assert done.returncode == 0, f"{done.stderr}\n{on.printed}"
            return done.stdout

        run("kafka-topics.sh", "--bootstrap-server", servers, "--create", "--topic", "orders", "--partitions", "3")
        run(
            "sh",
            "-c",
            f"seq 100 | kafka-console-producer.sh --bootstrap-server {servers} --topic orders --producer-property acks=all",
        )
        asked = "exec 3<>/dev/tcp/registry/8081; printf 'GET /subjects HTTP/1.0\\r\\n\\r\\n' >&3; tail -n 1 <&3"
        assert run("bash", "-c", asked) == "[]"
        second.container.kill()
        read = ("--topic", "orders", "--from-beginning", "--max-messages", "100")
        lines = run("kafka-console-consumer.sh", "--bootstrap-server", servers, *read, on=third).splitlines()
        assert sorted(map(int, lines)) == list(range(1, 101))
        run("ottla-health")
        third.container.kill()
        deadline_s = time.monotonic() + HANG_S
        while (health := first.container.execute("ottla-health")).returncode == 0:
            assert time.monotonic() < deadline_s, "a broker without controllers says that it is ready"
            time.sleep(0.2)
        assert re.match(r"no controller has answered for \d+ s: ", health.stdout)
        run("ottla-health", "/healthz")


def test_compose_file_of_a_pipeline(image: Path, tmp_path: Path) -> None:
    """The example of a map: an order in, an invoice out."""
    if (spark := os.environ.get("OTTLA_SPARK_IMAGE")) is None:
        pytest.skip("this needs an image with Spark in OTTLA_SPARK_IMAGE: tools.image build FOLDER EXTRAS=security,spark,java")
    services = services_of("pipeline.yaml")
    hosts = {"broker": "10.89.1.2", "pipeline": "10.89.1.3"}
    broker, pipeline = services["broker"], services["pipeline"]
    example = {Path(__file__).parents[2] / "examples" / "map": "/srv/pipeline"}
    with ExitStack() as stack:
        network = stack.enter_context(Network())
        options = {"environment": broker["environment"], "is_read_only": broker["read_only"]}
        node = stack.enter_context(running(image, tmp_path, hostname="broker", hosts=hosts, **options))
        node.container.attach(network, hosts["broker"])
        node.await_line(READY)
        server = ("--bootstrap-server", "broker:19092")
        for topic in ("orders", "invoices"):
            assert node.container.execute("kafka-topics.sh", *server, "--create", "--topic", topic).returncode == 0
        order = """echo '{"id": 1, "amount": 10}' | ottla produce orders"""
        assert node.container.execute("sh", "-c", order).returncode == 0
        runner = stack.enter_context(
            running(Path(spark), tmp_path, pipeline["command"], hostname="pipeline", hosts=hosts, volumes=example)
        )
        runner.container.attach(network, hosts["pipeline"])
        read = node.container.execute(
            *("ottla", "consume", "invoices", "--from-beginning", "--max-messages", "1"), timeout_s=HANG_S
        )
        assert read.stdout == '{"order":1,"total":12.0}\n', f"{read.stderr}\n{runner.printed}"
        health = runner.container.execute("ottla-health", "/ready")
        assert health.returncode == 0, health.stdout


# -- testcontainers


def start_of(command: Sequence[str]) -> tuple[dict[str, str], list[str], dict[str, str], str]:
    """Variables, command, files and the awaited line of a start, as printed by the programs that ask testcontainers."""
    printed = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert printed.returncode == 0, printed.stderr
    variables: dict[str, str] = {}
    files: dict[str, str] = {}
    parts: list[str] = []
    line = ""
    for each in printed.stdout.splitlines():
        kind, name, digits = each.split("\t")
        content = bytes.fromhex(digits).decode()
        if kind == "variable":
            variables[name] = content
        elif kind == "file":
            files[name] = content
        elif kind == "command":
            parts.append(content)
        else:
            line = content
    assert variables
    assert files
    assert line
    return variables, parts, files, line


def check_start(image: Path, folder: Path, asked: Sequence[str], port: int) -> None:
    variables, command, files, line = start_of(asked)
    with running(image, folder, command, environment=variables, hostname="broker-1") as node:
        for path, content in files.items():
            node.container.put(path, content)
        printed = node.await_line(f"(?m)^{line}$")
        assert len(re.findall(f"(?m)^{line}$", printed)) == 1
        node.send_and_read(f"localhost:{port}")
        cluster_id = variables.get("CLUSTER_ID")
        assert cluster_id is None or f"of cluster {cluster_id} is up" in printed
        assert "Traceback" not in printed


@pytest.mark.parametrize("kind", ["kraft", "zookeeper"])
def test_testcontainers_for_python_reaches_ready(image: Path, tmp_path: Path, python_start: list[str], kind: str) -> None:
    check_start(image, tmp_path, [*python_start, kind], 9093)


@pytest.mark.parametrize("kind", ["apache", "confluent"])
def test_testcontainers_for_java_reaches_ready(image: Path, tmp_path: Path, java_start: list[str], kind: str) -> None:
    check_start(image, tmp_path, [*java_start, kind, "broker-1"], 9092)


# -- the image itself


def test_image_is_small_and_has_its_byte_code(image: Path) -> None:
    root = image / "root"
    size = sum(path.lstat().st_size for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    assert size < 250_000_000, f"the image has {size / 1e6:.0f} MB"
    package = next(root.glob("opt/ottla/lib/python3.*/site-packages/ottla"))
    sources = list(package.rglob("*.py"))
    cached = [path for path in sources if list((path.parent / "__pycache__").glob(f"{path.stem}.cpython-*.pyc"))]
    assert len(cached) == len(sources) > 500


def test_image_starts_quickly(image: Path, tmp_path: Path) -> None:
    """The first start formats as well. Processor time, because the machine may be busy."""
    with running(image, tmp_path) as node:
        node.await_line(READY)
        fields = Path(f"/proc/{node.container.first_process}/stat").read_text().rpartition(")")[2].split()
        used_s = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    assert used_s < 1.0, f"the start took {used_s:.2f} s of processor time"
