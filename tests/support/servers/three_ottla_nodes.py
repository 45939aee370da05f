"""`ThreeOttlaNodes`: what `ThreeNodes` is for Apache Kafka, with Ottla nodes. Tests are written once for both."""

from pathlib import Path

from tests.support.servers.apache_kafka import CLUSTER_ID
from tests.support.servers.kafka_server import KafkaServer, properties_text
from tests.support.servers.ottla_server import OTTLA, run_ottla
from tests.support.servers.three_nodes import NODES, ThreeNodes


class ThreeOttlaNodes(ThreeNodes):
    """Three Ottla nodes and their directories. Use as a context manager."""

    def _start(self, node: int) -> None:
        settings = self._properties(node) | {"controller.quorum.bootstrap.servers": ""}  # the harness would add it otherwise
        server = KafkaServer([*OTTLA, "server", "start"], settings, self._data_dir(node), name=f"Ottla (node {node})")
        server.start()
        self._running[node] = server

    def _format(self) -> None:
        for node in NODES:
            config = Path(self._folder.name) / f"format-{node}.properties"
            config.write_text(properties_text(self._properties(node)))
            done = run_ottla("storage", "format", "-t", CLUSTER_ID, "-c", config)
            assert done.returncode == 0, done.stderr
