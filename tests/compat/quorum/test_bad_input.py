"""What a person reads who has made a mistake with a cluster: one sentence each."""

import re
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.support.peers.topics import await_true
from tests.support.servers.kafka_server import HANG_S, KafkaServer, free_ports, properties_text
from tests.support.servers.ottla_cluster import OttlaCluster
from tests.support.servers.ottla_server import OTTLA, run_ottla

OTHER_CLUSTER = "AAAAAAAAAAAAAAAAAAAAAQ"


def broker_properties(cluster: OttlaCluster, folder: Path, node_id: int, **settings: object) -> dict[str, object]:
    """A broker without a controller, of the quorum of `cluster`."""
    (port,) = free_ports(1)
    return {
        "process.roles": "broker",
        "node.id": node_id,
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": ",".join(each.controller_bootstrap for each in cluster.nodes.values()),
        "log.dirs": folder / "data",
        **settings,
    }


def format_broker(folder: Path, properties: Mapping[str, object], cluster_id: str) -> Path:
    folder.mkdir()
    config = folder / "server.properties"
    config.write_text(properties_text(properties))
    done = run_ottla("storage", "format", "-t", cluster_id, "-c", config)
    assert done.returncode == 0, done.stderr
    return config


def run_formatted(folder: Path, properties: Mapping[str, object], cluster_id: str) -> "subprocess.CompletedProcess[str]":
    return run_ottla("server", "start", format_broker(folder, properties, cluster_id), timeout_s=90)


def last_line(done: "subprocess.CompletedProcess[str]") -> str:
    assert done.returncode == 1, done.stderr
    return [line for line in done.stderr.splitlines() if line.startswith("ottla: ")][-1]


@pytest.mark.slow
def test_another_clusters_directory_and_an_id_in_use(tmp_path: Path) -> None:
    with OttlaCluster(tmp_path) as cluster:
        stranger = tmp_path / "stranger"
        done = run_formatted(stranger, broker_properties(cluster, stranger, 9), OTHER_CLUSTER)
        assert re.fullmatch(
            r"ottla: the controllers at [\d.:, ]+ belong to another cluster: this node's directories are of cluster "
            rf"{OTHER_CLUSTER}\. Correct log\.dirs .*",
            last_line(done),
        )
        first, double = tmp_path / "first", tmp_path / "double"
        cluster_id = run_ottla("cluster", "id", "-b", cluster.bootstrap).stdout.split()[-1]
        with KafkaServer([*OTTLA, "server", "start"], broker_properties(cluster, first, 9), first / "data") as running:
            format_broker(first, running.properties, cluster_id)
            running.start()
            settings = broker_properties(cluster, double, 9, **{"initial.broker.registration.timeout.ms": 4000})
            done = run_formatted(double, settings, cluster_id)
        assert last_line(done).startswith("ottla: node.id 9 is in use: another broker with it is alive and has been for 4 s.")


def test_a_quorum_that_cannot_form_names_the_missing_voters(tmp_path: Path) -> None:
    cluster = OttlaCluster(tmp_path)
    config = tmp_path / "server-1.properties"
    log = tmp_path / "log"
    with open(log, "wb") as output:
        process = subprocess.Popen(
            [*OTTLA, "server", "start", str(config)], stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        await_true(lambda: "still waiting for a controller" in log.read_text(), "the node says what it waits for")
        (line,) = [line for line in log.read_text().splitlines() if "still waiting for a controller" in line]
        assert re.search(
            r"has 3 voters and needs 2 of them to elect a controller\. Missing: node 2 at 127\.0\.0\.1:\d+ \(accepts no "
            r"connections\), node 3 at 127\.0\.0\.1:\d+ \(accepts no connections\)",
            line,
        )
        process.send_signal(signal.SIGTERM)
        assert process.wait(HANG_S) == 0
    finally:
        process.kill()
        process.wait()
    assert cluster.nodes == {}
