"""`Cluster`: several Kafka nodes for tests, as a context manager. The face of this package; `engine.py` does the work."""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, TracebackType

from ottla.testing.arguments import check_kind
from ottla.testing.cluster import waiting
from ottla.testing.cluster.cuts import BOTH
from ottla.testing.cluster.engine import ClusterEngine
from ottla.testing.cluster.node import ClusterNode, Cut, cut_rule
from ottla.testing.engine import Report
from ottla.testing.errors import NotRunning
from ottla.testing.topic_helpers import AsyncTopicHelpers, TopicHelpers

__tracebackhide__ = True  # for pytest: a test that fails shows the line that called us


class Cluster(TopicHelpers):
    """A Kafka cluster on 127.0.0.1: `nodes` processes, each broker and controller.

        with Cluster(nodes=3) as cluster:
            cluster.create_topic("orders", partitions=3)
            cluster.leader("orders", 0).kill()

    `config` are settings of `server.properties`, for all nodes. The data is temporary, unless `data` names a folder, which is
    kept. If a node stops by itself, `stop` and the helpers raise `BrokerFailed`.
    """

    def __init__(
        self,
        config: Mapping[str, object] | None = None,
        *,
        nodes: int = 3,
        data: str | os.PathLike[str] | None = None,
    ) -> None:
        check_kind("nodes", nodes, int, "a number of nodes")
        engine = ClusterEngine(config or {}, nodes, None if data is None else os.fspath(data))
        super().__init__(engine)
        self._engine: ClusterEngine = engine
        self.aio = AsyncTopicHelpers(engine)
        """The helpers for topics and records as coroutines."""
        self._nodes = {node_id: ClusterNode(engine, node_id) for node_id in range(1, nodes + 1)}
        weakref.finalize(self, engine.abandon)

    def __repr__(self) -> str:
        running = [str(each.node_id) for each in self._nodes.values() if each.is_running]
        return f"<Cluster of {len(self._nodes)} nodes, running: {', '.join(running) or 'none'}>"

    # Address and state

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all nodes for clients, as HOST:PORT,HOST:PORT. They stay the same after restarts."""
        return ",".join(each.bootstrap_servers for each in self._nodes.values())

    @property
    def schema_registry_url(self) -> str:
        """The address of a schema registry for this cluster, started when first asked for. Needs `ottla[registry]`."""
        return self._engine.registry_url(self.bootstrap_servers, {})

    @property
    def nodes(self) -> list[ClusterNode]:
        """All nodes, whether they run or not; node 1 first."""
        return list(self._nodes.values())

    def node(self, node_id: int) -> ClusterNode:
        """One node by its id, from 1 on."""
        check_kind("node_id", node_id, int, "a node's id")
        if node_id not in self._nodes:
            raise ValueError(f"the cluster has no node {node_id}; it has {', '.join(map(str, self._nodes))}")
        return self._nodes[node_id]

    @property
    def cluster_id(self) -> str:
        """The id of the cluster, a UUID in Kafka's form."""
        if not self._engine.cluster_id:
            raise NotRunning("the cluster was not started: start() it, or use it as a context manager")
        return self._engine.cluster_id

    @property
    def data(self) -> Path:
        """The folder with the data of all nodes, in node-N each."""
        if self._engine.data is None:
            raise NotRunning("the cluster has no data: it was not started, or its temporary folder has been removed")
        return self._engine.data

    @property
    def is_running(self) -> bool:
        """Whether any node runs."""
        return any(each.is_running for each in self._nodes.values())

    @property
    def log_lines(self) -> list[str]:
        """The last lines that the nodes have logged, in the order of their times."""
        return self._engine.log_lines

    def _report(self, since: float) -> Report | None:
        """For the pytest plugin: what happened since a time."""
        return self._engine.report(since)

    # Start and stop

    def start(self) -> None:
        """Start every node that does not run, all at once; returns when they answer requests."""
        self._engine.begin()
        try:
            self._engine.run(self._engine.start())
        except BaseException:
            if not self.is_running:
                self._engine.end()
            raise

    def stop(self) -> None:
        """End all nodes and remove temporary data. Nodes with a folder of the test's own shut down cleanly."""
        self._engine.close_registry()
        try:
            self._engine.run_if_begun(self._engine.stop())
        finally:
            self._engine.end()

    def __enter__(self) -> Cluster:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    async def __aenter__(self) -> Cluster:
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.stop)

    # Who does what, and waiting

    def leader(self, topic: str, partition: int = 0, timeout: float = 30.0) -> ClusterNode:
        """The node that leads a partition; waits until there is one that runs."""
        return self._nodes[self._engine.run(waiting.leader(self._engine, topic, partition, timeout))]

    def controller(self, timeout: float = 30.0) -> ClusterNode:
        """The node with the active controller; waits until there is one that runs."""
        return self._nodes[self._engine.run(waiting.controller(self._engine, timeout))]

    def coordinator(self, group: str, timeout: float = 30.0) -> ClusterNode:
        """The node that coordinates a consumer group; waits until there is one that runs."""
        return self._nodes[self._engine.run(waiting.coordinator(self._engine, group, timeout))]

    def wait_until_healthy(self, timeout: float = 60.0) -> None:
        """Wait until all nodes run, every partition has a leader and every replica is in sync. `TimedOut` says what is not."""
        self._engine.run(waiting.until_healthy(self._engine, timeout))

    def wait_until_fenced(self, node: int | ClusterNode, timeout: float = 30.0) -> None:
        """Wait until the controller has noticed that a node is gone, and has moved what it led if another can lead it."""
        node_id = node.node_id if isinstance(node, ClusterNode) else node
        self._engine.run(waiting.until_fenced(self._engine, node_id, timeout))

    # Cuts

    def cut_off(
        self,
        node: int | ClusterNode,
        *,
        from_nodes: Sequence[int | ClusterNode] | None = None,
        from_clients: bool | None = None,
        direction: str = BOTH,
    ) -> Cut:
        """Cut a node off from all other nodes and from clients, or only from those that are named.

        `direction` is "both", "in" (nothing reaches the node) or "out" (nothing leaves it). Connections are neither closed nor
        refused: nothing comes through. Returns a `Cut`: `heal()` ends it, and so does the end of a `with` block.
        """
        rule = cut_rule(list(self._nodes), node, from_nodes, from_clients, direction)
        return Cut(self._engine, self._engine.run(self._engine.cut(rule)), rule)

    def heal(self) -> None:
        """End all cuts."""
        self._engine.run(self._engine.heal(None))

    # Helpers

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        config: Mapping[str, object] = MappingProxyType({}),
        *,
        replication_factor: int | None = None,
    ) -> None:
        """Create a topic. `config` are topic settings; without `replication_factor`, default.replication.factor applies."""
        self._engine.run(self._engine.create_topic(name, partitions, config, replication_factor))
