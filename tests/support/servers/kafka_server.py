"""One server process, Apache Kafka's or Ottla's: its settings, its start, its readiness and its end.

The process is always ended by its own pid: by `stop`, by leaving the `with` block, or at interpreter exit; and by the keeper
(`keeping.py`) if this process is killed. Ready means that the broker answers a Metadata request and is in its list of brokers
(a node that is only a controller: answers ApiVersions).
"""

import atexit
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from random import SystemRandom
from types import TracebackType

from tests.support.servers.keeping import keep

QUICK_JVM_FLAGS = (
    "-XX:TieredStopAtLevel=1",
    "-Xshare:auto",
    "-XX:+UseSerialGC",
    "-Xmx512m",
    "-Djava.awt.headless=true",
    "-Dfile.encoding=UTF-8",
)
"""JVM flags for tests: a fast start and little memory."""

SERVER_JVM_FLAGS = (
    "-Xmx1G",
    "-Xms1G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)
"""The JVM flags of Kafka's own start script, for fair benchmarks."""

LOG_LEVELS = ("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info")
"""Log levels: the steps of the start, warnings and errors; no line per segment."""

HANG_S = 180
"""How long to wait for a process or a server. A busy machine (load 8 on two cores) needs up to 60 s; only a hang needs more."""

LOG_TAIL_LINES = 60
LOG_LINE_CHARACTERS_MAX = 400
READY_POLL_S = 0.02


class ServerFailed(AssertionError):
    """The server did not start or stop; the text has the end of its log."""


_PORTS = range(15_000, 32_000)


def free_ports(count: int) -> list[int]:
    """`count` different loopback ports that are free right now.

    They lie below those that the system gives to clients and to servers that ask for any port: a server that is killed finds
    its own free when it starts again.
    """
    found: list[int] = []
    while len(found) < count:
        port = SystemRandom().choice(_PORTS)
        with socket.socket() as held, suppress(OSError):
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            held.bind(("127.0.0.1", port))
            if port not in found:
                found.append(port)
    return found


def default_properties(data_dir: str | Path, broker_port: int, controller_port: int) -> dict[str, object]:
    """The settings of a node that is broker and controller, with internal topics for a single-node cluster."""
    return {
        "process.roles": "broker,controller",
        "node.id": 1,
        "listeners": f"PLAINTEXT://127.0.0.1:{broker_port},CONTROLLER://127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller_port}",
        "log.dirs": data_dir,
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 1,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "share.coordinator.state.topic.num.partitions": 1,
        "group.initial.rebalance.delay.ms": 0,
    }


def properties_text(properties: Mapping[str, object]) -> str:
    """A Java properties file."""
    escaped = {key: str(value).replace("\\", "\\\\").replace("\n", "\\n") for key, value in properties.items()}
    return "".join(f"{key}={value}\n" for key, value in escaped.items())


def addresses_of(properties: Mapping[str, object]) -> dict[str, tuple[str, int]]:
    """Host and port of the listeners in `properties`, by the listeners' names."""
    listeners = (entry.strip().split("://") for entry in str(properties["listeners"]).split(","))
    return {name: (address.rpartition(":")[0], int(address.rpartition(":")[2])) for name, address in listeners}


def ports_of(properties: Mapping[str, object]) -> dict[str, int]:
    """The ports of the listeners in `properties`, by the listeners' names."""
    return {name: port for name, (_, port) in addresses_of(properties).items()}


class KafkaServer:
    """A server that runs until it is stopped. Get one from `ApacheKafka.start_server` or `start_ottla`.

    The path of a properties file is appended to `command`; `name` is the server's name in errors.
    """

    def __init__(
        self,
        command: Sequence[str],
        properties: Mapping[str, object],
        data_dir: str | Path | None,
        name: str = "Apache Kafka",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """With `tls` the first listener is a secured one: it is ready when it answers before the login."""
        keep()
        self._tls = tls
        self.name = name
        self._folder = Path(tempfile.mkdtemp(prefix="ottla-kafka-"))
        self.data_dir = Path(data_dir) if data_dir is not None else self._folder / "data"
        self._log_path = self._folder / "server.log"
        self.properties = default_properties(self.data_dir, *free_ports(2)) | dict(properties)
        self._roles = str(self.properties["process.roles"]).split(",")
        addresses = addresses_of(self.properties)
        controller = addresses.pop(str(self.properties["controller.listener.names"]), ("127.0.0.1", 0))
        self._host, self.port = next(iter(addresses.values())) if "broker" in self._roles else controller
        self.controller_port = controller[1]
        self.bootstrap = f"{self._host}:{self.port}"
        self.controller_bootstrap = f"{controller[0]}:{self.controller_port}"
        self._command = list(command)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id of the running server."""
        if self._process is None:
            raise ServerFailed("the server is not running, so it has no pid")
        return self._process.pid

    @property
    def ended_with(self) -> int | None:
        """The exit code of a server that has ended by itself; None while it runs."""
        return None if self._process is None else self._process.poll()

    def log_text(self) -> str:
        """All that the server has printed so far."""
        return self._log_path.read_text(errors="replace") if self._log_path.exists() else ""

    def start(self, ready_timeout_s: float = HANG_S) -> None:
        """Start the process and return when it answers."""
        self.launch()
        self.await_ready(ready_timeout_s)

    def launch(self) -> None:
        """Start the process."""
        config = self._folder / "server.properties"
        config.write_text(properties_text(self.properties))
        with open(self._log_path, "ab") as log:
            self._process = subprocess.Popen([*self._command, str(config)], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        atexit.register(self.kill)

    def await_ready(self, ready_timeout_s: float = HANG_S) -> None:
        """Return when the process answers."""
        assert self._process is not None, "it is launched"
        deadline = time.monotonic() + ready_timeout_s
        while not self._answers():
            if self._process.poll() is not None:
                raise ServerFailed(f"{self.name} ended with {self._process.returncode} while starting.\n{self.log_tail()}")
            if time.monotonic() > deadline:
                raise ServerFailed(f"{self.name} did not answer within {ready_timeout_s} s.\n{self.log_tail()}")
            time.sleep(READY_POLL_S)

    def stop(self, timeout_s: float = HANG_S) -> None:
        """Shut down cleanly (SIGTERM) and wait for the end; the data stays if the caller gave its folder."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                tail = self.log_tail()
                self.kill()
                raise ServerFailed(f"{self.name} was still running {timeout_s} s after SIGTERM.\n{tail}") from None
        self._forget()

    def kill(self) -> None:
        """End the process at once (SIGKILL), as a crash would. Harmless when it is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._forget()

    def __enter__(self) -> "KafkaServer":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            self.stop()
            return
        if isinstance(error, Exception):
            error.add_note(f"The log of {self.name} ends with:\n{self.log_tail()}")
        self.kill()

    def _forget(self) -> None:
        atexit.unregister(self.kill)
        self._process = None
        shutil.rmtree(self._folder, ignore_errors=True)

    def log_tail(self) -> str:
        """The end of the server's output, for error texts."""
        return "\n".join(line[:LOG_LINE_CHARACTERS_MAX] for line in self.log_text().splitlines()[-LOG_TAIL_LINES:])

    def _answers(self) -> bool:
        try:
            with socket.create_connection((self._host, self.port), timeout=5) as connection:
                if self._tls is not None:
                    with self._tls.wrap_socket(connection, server_hostname=self._host) as encrypted:
                        return answers_api_versions(encrypted)
                return broker_count(connection) > 0 if "broker" in self._roles else answers_api_versions(connection)
        except OSError:
            return False


METADATA, API_VERSIONS = 3, 18


def broker_count(connection: socket.socket) -> int:
    """The number of brokers in the response to a Metadata request (version 1, no topics)."""
    body = _ask(connection, METADATA, 1, struct.pack(">i", 0))
    return int(struct.unpack_from(">i", body, 0)[0])


def answers_api_versions(connection: socket.socket) -> bool:
    """Whether ApiVersions (version 0) is answered without an error."""
    return bool(_ask(connection, API_VERSIONS, 0, b"")[:2] == b"\0\0")


def _ask(connection: socket.socket, api_key: int, version: int, body: bytes) -> bytes:
    """Send one request; returns the body of its response. Encoded by hand: the harness must not use the code under test."""
    client = b"ottla-harness"
    frame = struct.pack(">hhih", api_key, version, 1, len(client)) + client + body
    connection.sendall(struct.pack(">i", len(frame)) + frame)
    (size,) = struct.unpack(">i", _receive(connection, 4))
    return _receive(connection, size)[4:]


def _receive(connection: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        part = connection.recv(size - len(received))
        if not part:
            raise ConnectionError("the server closed the connection before it had answered")
        received += part
    return received


START_ATTEMPTS = 3


def start_on_free_ports(
    make: Callable[[], KafkaServer], format_it: Callable[[KafkaServer], None], ready_timeout_s: float
) -> KafkaServer:
    """Make a server, format its directory if it is not, and start it.

    If another process has taken one of its ports first, it is made again, with other ports.
    """
    for attempt in range(1, START_ATTEMPTS + 1):
        server = make()
        try:
            if not (server.data_dir / "meta.properties").exists():
                format_it(server)
            server.start(ready_timeout_s)
        except BaseException:
            port_was_taken = "in use" in server.log_text()
            server.kill()
            if attempt < START_ATTEMPTS and port_was_taken:
                continue
            raise
        return server
    raise AssertionError("unreachable: the last attempt returns or raises")
