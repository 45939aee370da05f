"""A Kafka Connect worker in distributed mode, controlled through its REST interface."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.support.servers.java_programs import JavaProcess, JavaPrograms
from tests.support.servers.kafka_server import HANG_S, free_ports, properties_text

RETRIABLE = (404, 409, 500, 503)
"""HTTP codes: not known yet, or a rebalance is under way."""


class ConnectWorker:
    """One worker; `start` again after `kill` is the same worker restarted. Use as a context manager."""

    def __init__(self, programs: JavaPrograms, folder: Path, bootstrap: str, settings: Mapping[str, object]) -> None:
        self._programs = programs
        (port,) = free_ports(1)
        self._address = f"http://127.0.0.1:{port}"
        self._config = folder / "worker.properties"
        chosen: dict[str, object] = {
            "bootstrap.servers": bootstrap,
            "group.id": "connect",
            "listeners": self._address,
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "config.storage.topic": "connect-configs",
            "offset.storage.topic": "connect-offsets",
            "status.storage.topic": "connect-status",
            "config.storage.replication.factor": 1,
            "offset.storage.replication.factor": 1,
            "offset.storage.partitions": 2,
            "status.storage.replication.factor": 1,
            "status.storage.partitions": 1,
            "offset.flush.interval.ms": 500,
            "plugin.discovery": "service_load",
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 300,
            "scheduled.rebalance.max.delay.ms": 0,
        }
        self._config.write_text(properties_text(chosen | dict(settings)))
        self._process: JavaProcess | None = None

    def start(self) -> None:
        """Start the worker; returns when it answers requests."""
        self._process = self._programs.start("org.apache.kafka.connect.cli.ConnectDistributed", self._config)
        self._retried("GET", "/connectors")

    def kill(self) -> None:
        """SIGKILL."""
        assert self._process is not None
        self._process.kill()

    def put(self, name: str, config: Mapping[str, str]) -> None:
        """Create or change a connector."""
        self._retried("PUT", f"/connectors/{name}/config", dict(config))

    def await_running(self, name: str) -> None:
        """Return when the connector and its tasks run."""
        deadline = time.monotonic() + HANG_S
        while True:
            status = self._retried("GET", f"/connectors/{name}/status")
            states = [status["connector"]["state"], *(task["state"] for task in status["tasks"])]
            if len(states) > 1 and set(states) == {"RUNNING"}:
                return
            assert "FAILED" not in states, f"{name} failed: {status}"
            assert time.monotonic() < deadline, f"{name} did not run in {HANG_S} s: {status}"
            time.sleep(0.1)

    def _retried(self, method: str, path: str, body: dict[str, str] | None = None) -> Any:
        assert self._process is not None
        deadline = time.monotonic() + HANG_S
        while True:
            try:
                return self._request(method, path, body)
            except urllib.error.HTTPError as refused:
                why = f"{refused.code} {refused.read().decode()}"
                if refused.code not in RETRIABLE:
                    raise AssertionError(f"{method} {path}: {why}") from None
            except OSError as failed:
                why = str(failed)
            self._process.check_alive()
            assert time.monotonic() < deadline, f"{method} {path} was not answered in {HANG_S} s: {why}"
            time.sleep(0.1)

    def _request(self, method: str, path: str, body: dict[str, str] | None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._address + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read())

    def __enter__(self) -> "ConnectWorker":
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._process is not None:
            self._process.__exit__(kind, error, trace)
