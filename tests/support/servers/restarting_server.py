"""A server that is killed and started again on the same directory and ports, while clients keep running."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from tests.support.servers.kafka_server import KafkaServer, default_properties, free_ports
from tests.support.servers.ottla_server import StartServer


class RestartingServer:
    """One node and its directory. Use as a context manager."""

    def __init__(self, start_server: StartServer, properties: Mapping[str, object] | None = None) -> None:
        self._start_server = start_server
        self._folder = tempfile.TemporaryDirectory(prefix="ottla-restarts-")
        broker_port, controller_port = free_ports(2)
        data_dir = Path(self._folder.name)
        self._properties = default_properties(data_dir, broker_port, controller_port) | dict(properties or {})
        self.bootstrap = f"127.0.0.1:{broker_port}"
        self.server: KafkaServer | None = None

    def start(self) -> KafkaServer:
        """Start it on the existing data; returns when it answers."""
        self.server = self._start_server(self._properties, data_dir=self._folder.name)
        return self.server

    def kill(self) -> None:
        """SIGKILL."""
        assert self.server is not None
        assert self.server.ended_with is None, f"{self.server.name} had ended by itself:\n{self.server.log_tail()}"
        self.server.kill()

    def __enter__(self) -> "RestartingServer":
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.server is not None:
            if isinstance(error, Exception):
                error.add_note(f"The log of {self.server.name} ends with:\n{self.server.log_tail()}")
            self.server.kill()
        self._folder.cleanup()
