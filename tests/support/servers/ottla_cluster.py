"""A cluster of three Ottla nodes, each broker and controller, from properties files as in Kafka's course.

with OttlaCluster(tmp_path) as cluster:
    ... cluster.bootstrap, cluster.nodes[2].bootstrap ...
    cluster.kill(cluster.active_controller())
    cluster.start(2)
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType

from tests.support.servers.apache_kafka import CLUSTER_ID
from tests.support.servers.kafka_server import KafkaServer, free_ports, properties_text
from tests.support.servers.ottla_server import OTTLA, run_ottla
from tests.support.servers.wires import Wires

NODES = (1, 2, 3)
SETTINGS: dict[str, object] = {
    "offsets.topic.num.partitions": 6,
    "transaction.state.log.num.partitions": 6,
    # A killed broker is fenced after its session: the default of 9 s would only make the tests long.
    "broker.session.timeout.ms": 3000,
    "broker.heartbeat.interval.ms": 300,
}
PATIENT: dict[str, object] = {
    "broker.session.timeout.ms": 9000,
    "broker.heartbeat.interval.ms": 1000,
    "controller.quorum.fetch.timeout.ms": 10_000,
    "controller.quorum.election.timeout.ms": 5000,
    "controller.quorum.request.timeout.ms": 10_000,
}
"""For long tests, which meet a busy machine sooner or later: a node that waits for the processor for seconds is not a dead one.
A killed controller is replaced as fast as with the defaults, since its port refuses; a killed broker is fenced after 9 s."""


class OttlaCluster:
    """Three formatted nodes; `with` starts them all and ends those that are left.

    Their log directories are node-N in `folder`, the further ones node-N-2 and so on. `wires` gives each node a network of its
    own.
    """

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, object] | None = None,
        directories: int = 1,
        wires: Wires | None = None,
        brokers_listener: str | None = None,
        format_options: Sequence[str] = (),
    ) -> None:
        """`brokers_listener` names a listener at which brokers reach each other; clients keep PLAINTEXT."""
        ports = free_ports(3 * len(NODES))
        hosts = {node: "127.0.0.1" if wires is None else wires.address(node) for node in NODES}
        controllers = {node: f"{hosts[node]}:{port}" for node, port in zip(NODES, ports[len(NODES) :], strict=False)}
        internal = dict(zip(NODES, ports[2 * len(NODES) :], strict=True))
        voters = ",".join(f"{node}@{address}" for node, address in controllers.items())
        self._commands = {node: [*(() if wires is None else wires.enter(node)), *OTTLA, "server", "start"] for node in NODES}
        self._properties: dict[int, dict[str, object]] = {}
        self._logs: dict[int, str] = dict.fromkeys(NODES, "")
        self.nodes: dict[int, KafkaServer] = {}
        self.directories = {
            node: [folder / f"node-{node}", *(folder / f"node-{node}-{number}" for number in range(2, directories + 1))]
            for node in NODES
        }
        for node, port in zip(NODES, ports, strict=False):
            self._properties[node] = {
                "process.roles": "broker,controller",
                "node.id": node,
                "listeners": f"PLAINTEXT://{hosts[node]}:{port},CONTROLLER://{controllers[node]}",
                "controller.listener.names": "CONTROLLER",
                "controller.quorum.voters": voters,
                # No others than these: the harness would add the setting that static voters exclude.
                "controller.quorum.bootstrap.servers": "",
                "log.dirs": ",".join(map(str, self.directories[node])),
                **SETTINGS,
                **(settings or {}),
            }
            if brokers_listener is not None:
                self._properties[node]["listeners"] = (
                    f"{self._properties[node]['listeners']},{brokers_listener}://{hosts[node]}:{internal[node]}"
                )
                self._properties[node]["inter.broker.listener.name"] = brokers_listener
            config = folder / f"server-{node}.properties"
            config.write_text(properties_text(self._properties[node]))
            done = run_ottla("storage", "format", "-t", CLUSTER_ID, "-c", config, *format_options)
            assert done.returncode == 0, done.stderr

    @property
    def bootstrap(self) -> str:
        """The bootstrap servers: the nodes that are up."""
        return ",".join(server.bootstrap for server in self.nodes.values())

    def start(self, *nodes: int) -> None:
        """Start these nodes, and wait until each answers. Several are started at once: one alone is no quorum."""
        for node in nodes:
            data = str(self.directories[node][0])
            self.nodes[node] = KafkaServer(self._commands[node], self._properties[node], data, name=f"Ottla (node {node})")
        with ThreadPoolExecutor(len(nodes)) as pool:
            list(pool.map(lambda node: self.nodes[node].start(), nodes))

    def kill(self, node: int) -> None:
        """kill -9."""
        self._logs[node] += self.nodes[node].log_text()
        self.nodes.pop(node).kill()

    def log_text(self, node: int) -> str:
        """What a node has printed, in all of its runs."""
        return self._logs[node] + (self.nodes[node].log_text() if node in self.nodes else "")

    def changes(self) -> list[str]:
        """What the nodes have said about ISRs, fenced brokers and new controllers."""
        said = ("the ISR is", "is fenced", "is active in epoch")
        return [line for node in NODES for line in self.log_text(node).splitlines() if any(each in line for each in said)]

    def active_controller(self, among: Iterable[int] = NODES) -> int:
        """The node that became active in the highest epoch."""
        epochs = {node: re.findall(rf"controller {node} is active in epoch (\d+)", self.log_text(node)) for node in among}
        return max((int(epoch), node) for node, found in epochs.items() for epoch in found)[1]

    def __enter__(self) -> "OttlaCluster":
        self.start(*NODES)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if isinstance(error, Exception):
            for server in self.nodes.values():
                error.add_note(f"The log of {server.name} ends with:\n{server.log_tail()}")
        for server in self.nodes.values():
            server.kill()
