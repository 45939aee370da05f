"""Three Ottla controllers whose network is cut: epochs stay, a lonely leader refuses writes, uncommitted records go."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest
from tests.support.peers.raw_client import RawClient
from tests.support.peers.topics import await_true
from tests.support.servers.apache_kafka import CLUSTER_ID
from tests.support.servers.cut_network import CutNetwork, CutNode, in_own_network, why_unavailable
from tests.support.servers.kafka_server import properties_text
from tests.support.servers.ottla_server import OTTLA, run_ottla

from ottla.errors import DecodeError
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponsePartitionData,
)
from ottla.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

pytestmark = pytest.mark.slow

NODES = (1, 2, 3)
PORT = 9093
FETCH_TIMEOUT_S = 2.0
REFUSED_WITHIN_S = 1.5 * FETCH_TIMEOUT_S + 1
BROKER_RESOURCE = 4


def setting(value: str) -> IncrementalAlterConfigsRequest:
    change = AlterableConfig(name="log.retention.ms", config_operation=0, value=value)
    return IncrementalAlterConfigsRequest(
        resources=[AlterConfigsResource(resource_type=BROKER_RESOURCE, resource_name="", configs=[change])]
    )


class Controllers:
    """Three controllers, one in each namespace."""

    def __init__(self, network: CutNetwork, folder: Path) -> None:
        self.folder = folder
        self.nodes: dict[int, CutNode] = {}
        self._processes: dict[int, tuple[subprocess.Popen[bytes], IO[bytes]]] = {}
        voters = ",".join(f"{node}@10.77.0.{node}:{PORT}" for node in NODES)
        for node in NODES:
            self.nodes[node] = network.add(node)
            config = folder / f"server-{node}.properties"
            settings = {
                "process.roles": "controller",
                "node.id": node,
                "listeners": f"CONTROLLER://10.77.0.{node}:{PORT}",
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.voters": voters,
                "log.dirs": folder / f"node-{node}",
            }
            config.write_text(properties_text(settings))
            done = run_ottla("storage", "format", "-t", CLUSTER_ID, "-c", config)
            assert done.returncode == 0, done.stderr
            log = open(folder / f"server-{node}.log", "ab")  # noqa: SIM115 - closed with the process
            command = [*OTTLA, "server", "start", str(config)]
            self._processes[node] = self.nodes[node].popen(command, stdout=log, stderr=log), log

    def described(self, node: int) -> DescribeQuorumResponsePartitionData | None:
        """What a node says if it leads."""
        asked = DescribeQuorumRequestTopicData(
            topic_name="__cluster_metadata", partitions=[DescribeQuorumRequestPartitionData(partition_index=0)]
        )

        def ask() -> DescribeQuorumResponsePartitionData | None:
            try:
                with RawClient(PORT, self.nodes[node].address, timeout_s=2) as client:
                    response = client.request(DescribeQuorumRequest(topics=[asked]), 2)
            except (OSError, DecodeError):
                return None
            found: DescribeQuorumResponsePartitionData = response.topics[0].partitions[0]
            return None if found.error_code else found

        return self.nodes[node].inside(ask)

    def quorum(self, after_epoch: int = -1, among: tuple[int, ...] = NODES) -> DescribeQuorumResponsePartitionData:
        found: list[DescribeQuorumResponsePartitionData] = []

        def has_leader() -> bool:
            for node in among:
                told = self.described(node)
                if told is not None and told.leader_epoch > after_epoch and told.high_watermark >= 0:
                    found.append(told)
            return bool(found)

        await_true(has_leader, "a leader")
        return max(found, key=lambda each: each.leader_epoch)

    def write(self, node: int, *values: str) -> int:
        """Set values in the metadata through one node, each when the one before is in its log; returns the last error code."""

        def ask() -> int:
            clients = [RawClient(PORT, self.nodes[node].address, timeout_s=30) for _ in values]
            try:
                for client, value in zip(clients, values, strict=True):
                    client.send(setting(value), 1)
                    if client is not clients[-1]:
                        await_true(lambda value=value: value.encode() in self.log_bytes(node), "the record is in the log")
                return int(clients[-1].receive(IncrementalAlterConfigsRequest.KEY, 1).responses[0].error_code)
            finally:
                for client in clients:
                    client.close()

        return self.nodes[node].inside(ask)

    def log_bytes(self, node: int) -> bytes:
        return b"".join(path.read_bytes() for path in (self.folder / f"node-{node}/__cluster_metadata-0").glob("*.log"))

    def close(self) -> None:
        for process, log in self._processes.values():
            process.kill()
            process.wait()
            log.close()


def with_controllers(folder: Path, body: Callable[[Controllers], None]) -> None:
    why = why_unavailable()
    if why is not None:
        pytest.skip(why)

    def run(network: CutNetwork) -> None:
        controllers = Controllers(network, folder)
        try:
            body(controllers)
        except BaseException:
            for node in NODES:
                print(f"node {node}:", (folder / f"server-{node}.log").read_text()[-3000:])
            raise
        finally:
            controllers.close()

    in_own_network(run)


def test_voter_that_was_cut_off_comes_back_without_a_new_epoch(tmp_path: Path) -> None:
    def body(controllers: Controllers) -> None:
        before = controllers.quorum()
        voter = next(node for node in NODES if node != before.leader_id)
        controllers.nodes[voter].cut(incoming=True, outgoing=True)
        assert controllers.write(before.leader_id, "1111") == 0
        end = time.monotonic() + 30
        while time.monotonic() < end:
            told = controllers.described(before.leader_id)
            assert told is not None, "the leader keeps its lead"
            assert told.leader_epoch == before.leader_epoch
            time.sleep(1)  # the cut lasts 30 s: nothing is awaited
        controllers.nodes[voter].heal()
        mark = controllers.quorum().high_watermark

        def has_log() -> bool:
            voters = {each.replica_id: each.log_end_offset for each in controllers.quorum().current_voters}
            return voters[voter] >= mark

        await_true(has_log, "the voter has the log again")
        assert controllers.quorum().leader_epoch == before.leader_epoch
        assert b"1111" in controllers.log_bytes(voter)

    with_controllers(tmp_path, body)


@pytest.mark.parametrize(
    ("incoming", "outgoing"), [(True, True), (True, False), (False, True)], ids=["both-ways", "incoming", "outgoing"]
)
def test_leader_that_was_cut_off_refuses_writes(incoming: bool, outgoing: bool, tmp_path: Path) -> None:
    def body(controllers: Controllers) -> None:
        before = controllers.quorum()
        old = before.leader_id
        assert controllers.write(old, "1111111") == 0
        controllers.nodes[old].cut(incoming=incoming, outgoing=outgoing)
        began = time.monotonic()
        # If packets still leave, the followers' parked Fetches are answered with the first one: it may stay.
        assert controllers.write(old, "6666666", "7777777") == ErrorCode.NOT_CONTROLLER, "appended, and cannot be committed"
        assert controllers.write(old, "8888888") == ErrorCode.NOT_CONTROLLER
        took_s = time.monotonic() - began
        print(f"refused after {took_s:.2f} s")
        assert took_s < REFUSED_WITHIN_S
        assert b"7777777" in controllers.log_bytes(old)
        others = tuple(node for node in NODES if node != old)
        after = controllers.quorum(before.leader_epoch, others)
        assert controllers.write(after.leader_id, "9999999") == 0
        controllers.nodes[old].heal()
        await_true(lambda: b"9999999" in controllers.log_bytes(old), "the old leader has the new log")
        for node in NODES:
            content = controllers.log_bytes(node)
            assert b"1111111" in content
            assert b"7777777" not in content
        assert controllers.quorum().leader_epoch == after.leader_epoch, "it comes back without another election"

    with_controllers(tmp_path, body)
