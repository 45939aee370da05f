"""Services beside the nodes of `ottla up`, and beside a node whose settings ask for them: a schema registry and a console, each
in a process of its own, begun by the first connection to its port.

The port is open from the start and its address is printed, but a service that nobody uses costs neither time nor memory. The
process takes over the listening socket; if it ends, the next connection begins another. It ends with this process: its standard
input is a pipe from here.
"""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from ottla.errors import OttlaError

if TYPE_CHECKING:
    from ottla.broker.node import Node

logger = logging.getLogger("ottla.node")

LISTEN_FD = "--listen-fd"
REGISTRY = "schema registry"
REGISTRY_PORT = 8081
REGISTRY_SETTING = "confluent.schema.registry.url"
STOP_S = 10.0
PORTS_AFTER = 9
BACKLOG = 128
PAUSE_S = 1.0
"""A process that fails at once is not begun again without a pause."""


class Companion:
    """One service: `ottla VERB …` with its listening socket."""

    def __init__(self, name: str, listener: socket.socket, command: Sequence[str]) -> None:
        self.name = name
        self.url = url_of(listener)
        self._listener = listener
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin the process with the next connection."""
        self._loop = loop
        loop.add_reader(self._listener, self._begin)

    def _begin(self) -> None:
        assert self._loop is not None
        self._loop.remove_reader(self._listener)
        descriptor = self._listener.fileno()
        command = [sys.executable, "-m", "ottla", *self._command, LISTEN_FD, str(descriptor)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, pass_fds=[descriptor])
        # A thread of its own: the loop's end waits for those of its executor, and this process ends later.
        threading.Thread(target=self._until_ended, args=(self._process,), daemon=True).start()

    def _until_ended(self, process: subprocess.Popen[bytes]) -> None:
        process.wait()
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._ended)

    def _ended(self) -> None:
        assert self._loop is not None
        self._loop.call_later(PAUSE_S, self._watch_again)

    def _watch_again(self) -> None:
        if self._loop is not None and not self._is_closed:
            self._loop.add_reader(self._listener, self._begin)

    def close(self) -> None:
        """End the process, if it runs."""
        self._is_closed = True
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._listener.close()


class Companions:
    """The services beside a node or a cluster; a `with` block ends them."""

    def __init__(self) -> None:
        self.services: list[Companion] = []
        self._reserved: dict[str, socket.socket] = {}

    def add(self, name: str, host: str, port: int, command: Sequence[str]) -> None:
        """Open a port for a service, or one of the ports after it, and begin to watch it."""
        listener = self._reserved.pop(name, None) or listen(host, port, or_next=PORTS_AFTER)
        self.serve(Companion(name, listener, command))

    def serve(self, companion: Companion) -> None:
        """Begin to watch the port of a service."""
        companion.watch(asyncio.get_running_loop())
        self.services.append(companion)

    def reserve(self, name: str, host: str, port: int) -> str:
        """Open the port of a service that is added later; returns its address. Connections wait until then."""
        listener = self._reserved[name] = listen(host, port, or_next=PORTS_AFTER)
        url = url_of(listener)
        return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")

    def lines(self) -> list[str]:
        """What to tell people."""
        return [f"{each.name}: {each.url}" for each in self.services]

    def facts(self) -> dict[str, str]:
        """The addresses, for programs."""
        return {each.name.replace(" ", "_"): each.url for each in self.services}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for each in self.services:
            each.close()
        for listener in self._reserved.values():
            listener.close()


def registry_settings(companions: Companions, host: str, settings: Mapping[str, str]) -> dict[str, str]:
    """The setting by which nodes ask the registry that `add_registry` starts, unless `settings` name another one."""
    # One package of the extra stands for all: this is before the node is up, and `cli.registry` takes 48 ms to import.
    if REGISTRY_SETTING in settings or importlib.util.find_spec("starlette") is None:
        return {}
    return {REGISTRY_SETTING: companions.reserve(REGISTRY, host, REGISTRY_PORT)}


def add_registry(companions: Companions, host: str, servers: str, client_properties: Path | None) -> None:
    """A schema registry for the node or cluster at `servers`, if its packages are installed."""
    from ottla.cli.registry import missing_packages  # late: after the node is up

    if not missing_packages():
        login = () if client_properties is None else ("--command-config", str(client_properties))
        companions.add(REGISTRY, host, REGISTRY_PORT, ("registry", "-b", servers, *login))


def add_console(companions: Companions, host: str, servers: str, client_properties: Path | None) -> None:
    """A web console for the node or cluster at `servers`, if its packages are installed. It shows the registry added before."""
    from ottla.cli.console import LOOPBACK, PORT, missing_packages  # late: after the node is up

    if not missing_packages():
        login = () if client_properties is None else ("--command-config", str(client_properties))
        changes = ("--allow-changes",) if host in LOOPBACK else ()
        schemas = [word for each in companions.services if each.name == REGISTRY for word in ("--schema-registry", each.url)]
        about = ("-b", servers, "--name", "local", "--host", host)
        companions.add("console", host, PORT, ("console", *about, *changes, *schemas, *login))


CONSOLE_PORT_SETTING: Final = "ottla.console.port"
REGISTRY_PORT_SETTING: Final = "ottla.schema.registry.port"


@contextmanager
def services_beside(settings: Mapping[str, str]) -> Iterator[Callable[[Node], None]]:
    """The services that a node's settings ask for. Their ports are open within the block; what it yields is called when the
    node is up, and begins to serve them."""
    wanted = [
        name for name in (CONSOLE_PORT_SETTING, REGISTRY_PORT_SETTING) if settings.get(name, "").strip() not in ("", "-1")
    ]
    if not wanted:
        yield lambda node: None
        return
    from ottla.cli.common.settings import CONFIG_VARIABLE, read_properties  # late, as what follows: most nodes have none
    from ottla.cli.console import missing_packages as console_lacks
    from ottla.cli.registry import missing_packages as registry_lacks
    from ottla.config.broker import BrokerConfig

    config = BrokerConfig.from_settings(settings)
    file = config.ottla_command_config or os.environ.get(CONFIG_VARIABLE)
    given = {} if file is None else read_properties(file)
    protocol = given.get("security.protocol") or os.environ.get("OTTLA_SECURITY_PROTOCOL", "PLAINTEXT")
    offered = [config.listener_security[each.name].protocol for each in config.broker_listeners]
    if protocol not in offered:
        raise OttlaError(
            f"{wanted[0]}: what is to be served there would connect with security.protocol={protocol}, and this node's "
            f"listeners have {', '.join(offered)}: name a file with the settings of a client in ottla.command.config"
        )
    login = () if file is None else ("--command-config", file)
    opened: list[tuple[str, socket.socket, tuple[str, ...]]] = []
    with Companions() as companions, ExitStack() as stack:

        def open_port(name: str, setting: str, host: str, port: int, *command: str) -> None:
            listener = listen(host, port, named_by=setting)
            stack.callback(listener.close)
            opened.append((name, listener, (*command, *login)))

        if CONSOLE_PORT_SETTING in wanted:
            _refuse_missing(CONSOLE_PORT_SETTING, "console", console_lacks())
            host = config.ottla_console_host
            open_port("console", CONSOLE_PORT_SETTING, host, config.ottla_console_port, "console", "--host", host)
        if REGISTRY_PORT_SETTING in wanted:
            _refuse_missing(REGISTRY_PORT_SETTING, "registry", registry_lacks())
            host = config.ottla_schema_registry_host
            open_port("schema registry", REGISTRY_PORT_SETTING, host, config.ottla_schema_registry_port, "registry")

        def begin(node: Node) -> None:
            for name, listener, command in opened:
                companions.serve(Companion(name, listener, (*command, "-b", node.servers_with(protocol))))
            for line in companions.lines():
                logger.info("%s", line)

        yield begin


def _refuse_missing(setting: str, extra: str, packages: list[str]) -> None:
    if packages:
        raise OttlaError(f"{setting} needs the packages {', '.join(packages)}: pip install 'ottla[{extra}]'")


def listen(host: str, port: int, *, or_next: int = 0, named_by: str = "--port") -> socket.socket:
    """A listening socket. If the port is taken, one of the `or_next` ports after it, then any free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for candidate in [*range(port, port + or_next + 1), *([0] if or_next else [])]:
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, candidate))
            listener.listen(BACKLOG)
            return listener
        except OSError as problem:
            listener.close()
            failure = problem
    raise OttlaError(
        f"port {port} of {host} cannot be opened: {failure.strerror}. Choose another with {named_by}; 0 takes a free one"
    )


def url_of(listener: socket.socket) -> str:
    """The address of a listening socket, for browsers."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def taken_over(descriptor: int) -> socket.socket:
    """The listening socket that another process has opened for this one."""
    return socket.socket(fileno=descriptor)


async def until_parent_ends() -> None:
    """Wait until the process that began this one is gone: its end of standard input closes."""
    loop = asyncio.get_running_loop()
    gone = asyncio.Event()

    def look() -> None:
        if not os.read(0, 4096):
            loop.remove_reader(0)
            gone.set()

    loop.add_reader(0, look)
    await gone.wait()
