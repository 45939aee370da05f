"""A cluster whose nodes are processes of Ottla and of Apache Kafka, each with its own roles.

    nodes = {1: Part("ottla", "controller"), 2: Part("apache", "controller"), 3: Part("apache", "broker")}
    with MixedCluster(kafka, tmp_path, nodes) as cluster:
        cluster.start(1, 2)
        cluster.start(3)
        cluster.kill(cluster.leader())

The quorum is static, or dynamic with `first_voters`: then the other controllers are formatted to join it later.
"""

import os
import shutil
import signal
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from tests.support.peers.raw_client import RawClient
from tests.support.peers.topics import await_true
from tests.support.servers.apache_kafka import CLUSTER_ID, ApacheKafka
from tests.support.servers.kafka_server import LOG_LEVELS, KafkaServer, ServerFailed, free_ports, properties_text
from tests.support.servers.kafka_tools import KafkaTools
from tests.support.servers.ottla_server import OTTLA, run_ottla
from tests.support.servers.secured_nodes import SecuredNodes
from tests.support.servers.three_nodes import JVM_FLAGS

from ottla.errors import DecodeError
from ottla.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponsePartitionData,
)

# As a cluster of three Ottla nodes has them: the default session of 9 s would only make the tests long.
SETTINGS: dict[str, object] = {"broker.session.timeout.ms": 3000, "broker.heartbeat.interval.ms": 500}
EQUAL_S = 60
"""How long replicas may take to become equal, when nothing is written."""


class Part(NamedTuple):
    """What a node is: whose process, and with which roles."""

    maker: str
    roles: str
    settings: Mapping[str, object] = {}


class MixedCluster:
    """Formatted nodes, to start and to end one by one. `with` ends those that are left."""

    def __init__(
        self,
        kafka: ApacheKafka,
        folder: Path,
        parts: Mapping[int, Part],
        settings: Mapping[str, object] | None = None,
        first_voters: Iterable[int] | None = None,
        secured: SecuredNodes | None = None,
    ) -> None:
        """With `secured` the nodes trust nobody but each other, and a PLAINTEXT client may do nothing."""
        self.kafka = kafka
        self.folder = folder
        self.parts = dict(parts)
        self.tools = KafkaTools(kafka)
        self.running: dict[int, KafkaServer] = {}
        self.ended_logs: dict[int, str] = dict.fromkeys(parts, "")
        self._settings = dict(settings or {})
        self._first_voters = None if first_voters is None else list(first_voters)
        self._secured = secured
        ports = iter(free_ports(2 * len(parts)))
        self.broker_ports = {node: next(ports) for node in parts}
        self.controller_ports = {node: next(ports) for node in parts}
        for node in parts:
            self.format(node)

    # -- settings

    @property
    def controllers(self) -> list[int]:
        return [node for node, part in self.parts.items() if "controller" in part.roles]

    @property
    def brokers(self) -> list[int]:
        return [node for node, part in self.parts.items() if "broker" in part.roles]

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers, running or not."""
        return ",".join(f"127.0.0.1:{self.broker_ports[node]}" for node in self.brokers)

    def data(self, node: int) -> Path:
        return self.folder / f"node-{node}"

    def metadata_log(self, node: int) -> Path:
        return self.data(node) / "__cluster_metadata-0"

    def properties(self, node: int) -> dict[str, object]:
        part = self.parts[node]
        listeners = [f"PLAINTEXT://127.0.0.1:{self.broker_ports[node]}"] * ("broker" in part.roles)
        listeners += [f"CONTROLLER://127.0.0.1:{self.controller_ports[node]}"] * ("controller" in part.roles)
        servers = [f"{each}@127.0.0.1:{self.controller_ports[each]}" for each in self.controllers]
        # The harness would add the one that is left out, and both exclude each other.
        quorum = {"controller.quorum.voters": ",".join(servers), "controller.quorum.bootstrap.servers": ""}
        if self._first_voters is not None:
            addresses = [server.partition("@")[2] for server in servers]
            quorum = {"controller.quorum.bootstrap.servers": ",".join(addresses)}
        return {
            "process.roles": part.roles,
            "node.id": node,
            "listeners": ",".join(listeners),
            "controller.listener.names": "CONTROLLER",
            "log.dirs": self.data(node),
            **quorum,
            **SETTINGS,
            **({} if self._secured is None else self._secured.properties(node, listeners)),
            **self._settings,
            **part.settings,
        }

    def config(self, node: int) -> Path:
        """The properties file of a node, as Kafka's tools want it."""
        path = self.folder / f"server-{node}.properties"
        path.write_text(properties_text({name: value for name, value in self.properties(node).items() if value != ""}))
        return path

    def format(self, node: int) -> None:
        """Format the directory of a node, which is empty."""
        options = []
        if self._first_voters is not None and "controller" in self.parts[node].roles:
            options = ["--standalone" if self._first_voters == [node] else "--no-initial-controllers"]
        if self._secured is not None and "controller" in self.parts[node].roles:
            options += self._secured.format_options
        if self.parts[node].maker == "apache":
            self.kafka.run_tool("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", self.config(node), *options)
            return
        done = run_ottla("storage", "format", "-t", CLUSTER_ID, "-c", self.config(node), *options)
        assert done.returncode == 0, done.stderr

    def empty(self, node: int) -> None:
        """Replace the disk of a node that is not running: its directory is formatted, with another directory id."""
        shutil.rmtree(self.data(node))
        first_voters, self._first_voters = self._first_voters, None if self._first_voters is None else []
        self.format(node)
        self._first_voters = first_voters

    # -- nodes

    def start(self, *nodes: int) -> None:
        """Start these nodes at once, and wait until each answers."""
        with ThreadPoolExecutor(len(nodes)) as pool:
            list(pool.map(self._start, nodes))

    def _start(self, node: int) -> None:
        command = [*OTTLA, "server", "start"]
        if self.parts[node].maker == "apache":
            command = [*self.kafka.jvm(JVM_FLAGS), *LOG_LEVELS, "-cp", self.kafka.server_classpath, "kafka.Kafka"]
        for attempt in (1, 2, 3):
            name = f"{self.parts[node].maker} node {node}"
            server = self.running[node] = KafkaServer(command, self.properties(node), self.data(node), name=name)
            if server.properties.get("controller.quorum.bootstrap.servers") == "":
                del server.properties["controller.quorum.bootstrap.servers"]
            try:
                server.start()
            except ServerFailed:
                # The system gives the ports of dead servers to clients' connections, for a short time.
                if attempt == 3 or "in use" not in server.log_text():
                    raise
                server.kill()
            else:
                return

    def kill(self, *nodes: int) -> None:
        """kill -9."""
        for node in nodes:
            self.ended_logs[node] += self.running[node].log_text()
            self.running.pop(node).kill()

    def stop(self, *nodes: int) -> None:
        """Stop these nodes at once, cleanly."""
        servers = [self.running.pop(node) for node in nodes]
        with ThreadPoolExecutor(len(nodes)) as pool:
            list(pool.map(KafkaServer.stop, servers))

    def pause(self, node: int) -> None:
        """SIGSTOP: connections stay open, and it answers nothing."""
        os.kill(self.running[node].pid, signal.SIGSTOP)

    def resume(self, node: int) -> None:
        os.kill(self.running[node].pid, signal.SIGCONT)

    # -- the quorum

    def described(self, node: int) -> DescribeQuorumResponsePartitionData | None:
        """What a controller says of the quorum; None if it does not lead or does not answer."""
        asked = DescribeQuorumRequestTopicData(
            topic_name="__cluster_metadata", partitions=[DescribeQuorumRequestPartitionData(partition_index=0)]
        )
        try:
            tls = None if self._secured is None else self._secured.node_context
            with RawClient(self.controller_ports[node], timeout_s=1, tls=tls) as client:
                response = client.request(DescribeQuorumRequest(topics=[asked]), 2)
        except (OSError, DecodeError):
            return None
        if response.error_code or not response.topics or response.topics[0].partitions[0].error_code:
            return None
        found: DescribeQuorumResponsePartitionData = response.topics[0].partitions[0]
        return found

    def quorum(self, but: Iterable[int] = (), after_epoch: int = -1) -> DescribeQuorumResponsePartitionData:
        """What the leader says, once it has committed something; `but` are nodes that are not asked."""
        asked = [node for node in self.controllers if node in self.running and node not in but]
        found: list[DescribeQuorumResponsePartitionData] = []

        def is_found() -> bool:
            answers = [each for each in map(self.described, asked) if each is not None]
            newest = max(answers, key=lambda each: each.leader_epoch, default=None)
            if newest is None or newest.leader_epoch <= after_epoch or newest.high_watermark < 0:
                return False
            found.append(newest)
            return True

        await_true(is_found, f"a leader after epoch {after_epoch}")
        return found[-1]

    def leader(self) -> int:
        return self.quorum().leader_id

    def follows(self, node: int) -> bool:
        """Whether a voter has what the leader has committed."""
        found = self.quorum(but=[node])
        return any(voter.replica_id == node and voter.log_end_offset >= found.high_watermark for voter in found.current_voters)

    def caught_up(self) -> int:
        """Wait until every voter has what is committed now; returns that offset."""
        mark = self.quorum().high_watermark

        def have_it() -> bool:
            return all(voter.log_end_offset >= mark for voter in self.quorum().current_voters)

        await_true(have_it, f"all voters have the log up to {mark}")
        return mark

    def elect_another(self) -> tuple[int, int]:
        """Pause the leader until another one leads; returns both."""
        before = self.quorum()
        self.pause(before.leader_id)
        try:
            after = self.quorum(but=[before.leader_id], after_epoch=before.leader_epoch)
        finally:
            self.resume(before.leader_id)
        await_true(lambda: self.follows(before.leader_id), f"node {before.leader_id} follows")
        return before.leader_id, after.leader_id

    def elect_one_of(self, nodes: Iterable[int]) -> int:
        """Elect until one of `nodes` leads; returns it."""
        wanted = set(nodes)
        for _ in range(30):
            leader = self.leader()
            if leader in wanted:
                return leader
            self.elect_another()
        raise AssertionError(f"none of {wanted} was elected in 30 elections")

    def quorum_status(self, node: int) -> dict[str, str]:
        """What `kafka-metadata-quorum describe --status` prints."""
        server = f"127.0.0.1:{self.controller_ports[node]}"
        result = self.tools.run("metadata_quorum", "--bootstrap-controller", server, "describe", "--status")
        return {name: value.strip() for name, _, value in (line.partition(":") for line in result.stdout.splitlines())}

    # -- replicas

    def held(self, node: int, topic: str, partition: int) -> bytes:
        """The batches that a broker has of a partition. Segments are joined: each replica rolls its own."""
        segments = sorted((self.data(node) / f"{topic}-{partition}").glob("*.log"))
        try:
            return b"".join(each.read_bytes() for each in segments)
        except FileNotFoundError:  # the folder has just been renamed: the log is deleted
            return b""

    def await_equal(self, topic: str, partition: int, *nodes: int) -> bytes:
        """Wait until these brokers hold the same batches, byte for byte; returns them."""
        found: list[bytes] = []

        def is_so() -> bool:
            found[:] = [self.held(node, topic, partition) for node in nodes]
            return len(set(found)) == 1

        await_true(is_so, f"nodes {nodes} to hold the same bytes of {topic}-{partition}", EQUAL_S)
        return found[0]

    # -- the end

    def __enter__(self) -> "MixedCluster":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if isinstance(error, Exception):
            for server in self.running.values():
                error.add_note(f"The log of {server.name} ends with:\n{server.log_tail()}")
        for server in self.running.values():
            server.kill()
        self.tools.close()
