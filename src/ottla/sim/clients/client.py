"""The base class of simulated clients: a connection that is reopened when it breaks, and the state that all clients share.

A client runs as one task outside the node's process. Its own `Random`, seeded with the run's seed and its name, decides what it
does.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import Any, NoReturn

from ottla.client.world import ClientWorld
from ottla.client_core.machine import Request
from ottla.env.net import DEFAULT_OPTIONS, Accept, Listener, SocketOptions, StreamOwner
from ottla.env.threads import Lineage, LoopThread, Signal
from ottla.env.tls import ShownCertificate, TlsOptions
from ottla.errors import KafkaError
from ottla.ids import Uuid
from ottla.link import Link, LinkEnded, LinkError, LinkOptions
from ottla.sim.checkers.checker import Checkers, Violation
from ottla.sim.histories.history import History
from ottla.sim.machine import PORT
from ottla.sim.net import SimHost, SimNetwork, SimStream
from ottla.sim.trace import Trace
from ottla.sim.world import START_MS, LoopClock, SeededRandomness
from ottla.wire.base import Message

__all__ = ["BACKOFF_S_MAX", "Client", "LinkEnded", "LinkError", "Stage"]


def value_text(value: bytes | None) -> str:
    """The value of a record as histories have it, without what fills it up."""
    return (value or b"").rstrip(b".").decode()


REQUEST_TIMEOUT_MS = 3_000


CLIENT_SETTINGS: dict[str, Any] = {
    "request_timeout_ms": REQUEST_TIMEOUT_MS,
    "socket_connection_setup_timeout_ms": 2_000,
    "retry_backoff_ms": 30,
    "retry_backoff_max_ms": 250,
    "reconnect_backoff_ms": 20,
    "reconnect_backoff_max_ms": 250,
    "enable_metrics_push": False,
}


class GatedHost:
    """`Network` of one process on a client's host. It refuses connections while the gate is closed, and to a dead process."""

    def __init__(self, host: SimHost, gate: asyncio.Event) -> None:
        self._host = host
        self._gate = gate
        self._streams: list[SimStream] = []
        self._is_dead = False
        self.connections = 0
        """How many connections were made: their number names the newest."""
        self.generation = 0
        """As `Lineage`: changes when the process dies. Clients that were dropped then are not closed or warned of."""

    def _may_connect(self) -> bool:
        return self._gate.is_set() and not self._is_dead

    def check_tls(self, options: TlsOptions) -> None:
        self._host.check_tls(options)

    def shown_certificate(self, options: TlsOptions, *, must_be_trusted: bool = False) -> ShownCertificate:
        return self._host.shown_certificate(options, must_be_trusted=must_be_trusted)

    async def listen(
        self,
        host: str,
        port: int,
        accept: Accept,
        options: SocketOptions = DEFAULT_OPTIONS,
        tls: TlsOptions | None = None,
    ) -> Listener:
        return await self._host.listen(host, port, accept, options, tls)

    async def connect(
        self,
        host: str,
        port: int,
        owner: StreamOwner,
        options: SocketOptions = DEFAULT_OPTIONS,
        tls: TlsOptions | None = None,
    ) -> SimStream:
        if not self._may_connect():
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"{host} cannot be reached now")
        stream = await self._host.connect(host, port, owner, options, tls)
        if not self._may_connect():
            stream.close()
        self._streams = [each for each in self._streams if not each.is_over]
        self._streams.append(stream)
        self.connections += 1
        return stream

    async def canonical_names(self, host: str) -> list[str]:
        return await self._host.canonical_names(host)

    def hang_up(self) -> None:
        """End all connections. Answers in transit are lost."""
        for stream in self._streams:
            stream.close()
        self._streams.clear()

    def die(self) -> None:
        """The process of this client is gone."""
        self._is_dead = True
        self.generation += 1
        self.hang_up()


class NoThreads:
    """`Threads` for a world without threads: the main thread of one process."""

    def __init__(self, process: GatedHost) -> None:
        self._process = process

    def start_loop(self, name: str) -> LoopThread:
        _refuse()

    def signal(self) -> Signal:
        _refuse()

    def lock(self) -> AbstractContextManager[Any]:
        _refuse()

    def lineage(self) -> Lineage:
        return self._process

    def thread_id(self) -> int:
        return 0

    def process_id(self) -> int:
        return 0


def _refuse() -> NoReturn:
    raise NotImplementedError("a simulated run has no threads: use the asyncio face of the client")


def client_world(seed: str, network: GatedHost) -> ClientWorld:
    """The world of one client process. `seed` decides its backoffs and its choices of partitions and nodes."""
    clock = LoopClock(asyncio.get_running_loop())
    return ClientWorld(clock, network, SeededRandomness(Random(seed)), NoThreads(network))


BACKOFF_S_MAX = 0.25


@dataclass(eq=False)
class Stage:
    """The state that all clients of a run share."""

    seed: int
    network: SimNetwork
    trace: Trace
    checkers: Checkers
    hosts: tuple[str, ...]
    """The hosts of the nodes, in the order of their ids at first."""
    transaction_version: int = 2
    """The cluster's transaction.version, as clients know it."""
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    """Cleared while clients may not connect to the node; the auditor may."""
    is_disk_broken: bool = False
    """Whether the node's disk has a fault in this life, so that unexpected errors are allowed."""
    has_rot: bool = False
    """Whether records on the disk of a node are damaged, or were a moment ago."""
    is_ending: bool = False
    """Whether clients must start nothing new and finish what they have begun."""

    ending_sent: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a program sends EndTxn."""
    resting: dict[str, None] = field(default_factory=dict)
    """Groups whose members pause."""
    numbers: Iterator[int] = field(default_factory=count)
    """Numbers that are unique in the run, such as committed offsets."""

    replication_factor: int = 1
    """How many replicas the topics of clients get."""
    is_coordinator: Callable[[str, int, float], bool] = lambda group, node, since_s: True
    """Whether a node has been the coordinator of a group since then, whether the node knows it or not."""
    serving_shard: Callable[[str, int], object] = lambda group, node: True
    """With what a node serves a group as its coordinator: None while it loads the group, and another object after each load."""
    committed_topic: Callable[[str], Uuid | None] = lambda name: None
    """The id of a topic by its name in the committed metadata of a cluster, whatever a node knows."""
    history: History = field(init=False)
    """What clients did and saw."""
    node_ids: dict[str, int] = field(init=False)
    """Host → the id of its node, also of hosts that are gone."""

    def __post_init__(self) -> None:
        self.history = History(self.now_s)
        self.node_ids = {host: node_id for node_id, host in enumerate(self.hosts, start=1)}

    def replace_host(self, lost: str, host: str, node_id: int) -> None:
        """A node is gone. Clients that are made from now on know the host of another instead."""
        self.hosts = tuple(host if each == lost else each for each in self.hosts)
        self.node_ids[host] = node_id

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{host}:{PORT}" for host in self.hosts)

    @property
    def is_cluster(self) -> bool:
        """Whether there are several nodes: each leads some partitions, and may know less of the cluster than another."""
        return len(self.hosts) > 1

    def now_s(self) -> float:
        return asyncio.get_running_loop().time()

    def now_ms(self) -> int:
        """The true time, independent of the node's clock."""
        return START_MS + int(asyncio.get_running_loop().time() * 1000)


class Client:
    """One client, on its own host."""

    passes_gate = False
    """Whether it may connect to the node while the gate is closed."""

    def __init__(self, stage: Stage, name: str) -> None:
        self.stage = stage
        self.name = name
        self.random = Random(f"{stage.seed}/{name}")
        self.connections = 0
        self._hosts: list[GatedHost] = []
        self._worlds = 0
        self._link: Link | None = None
        self.target: str | None = None
        """The host of the node that requests must go to; None: any."""
        self._options = LinkOptions(
            client_id=name, connect_timeout_ms=2_000, request_timeout_ms=REQUEST_TIMEOUT_MS, in_flight_max=8
        )

    @property
    def connection(self) -> str:
        """A name that changes with every connection that is made."""
        return f"{self.name}#{self._worlds}.{sum(host.connections for host in self._hosts)}"

    def world(self) -> ClientWorld:
        """The world of another process of this client: a program that runs the client that users run."""
        self._worlds += 1
        host = GatedHost(self.stage.network.host(self.name), self.stage.gate)
        self._hosts.append(host)
        return client_world(f"{self.stage.seed}/{self.name}/{self._worlds}", host)

    def die(self) -> None:
        """End the processes of this client: their connections are closed, and they can make no more."""
        for host in self._hosts:
            host.die()
        self._hosts.clear()

    async def link(self) -> Link:
        """The current connection. If there is none, connects and retries until it succeeds.

        With a `target`, raises `LinkError` if it cannot be reached; then any node is right again.
        """
        while (link := self._link) is None or link.is_over or self.target not in (None, link.host):
            if not self.passes_gate:
                await self.stage.gate.wait()
            if link is not None and not link.is_over:
                link.close()
            hosts = self.stage.hosts
            host = self.target or (self.random.choice(hosts) if len(hosts) > 1 else hosts[0])
            try:
                self._link = await Link.connect(self.stage.network.host(self.name), host, PORT, self._options)
            except LinkError:
                if self.target is not None:
                    self.target = None
                    raise
                await self.pause(BACKOFF_S_MAX)
            else:
                self.connections += 1
                if not self.passes_gate and not self.stage.gate.is_set():
                    self.hang_up()
        return link

    async def ask(self, message: Message, version: int | None = None) -> Any:
        """Send one request and await its answer. Raises `LinkError`."""
        return await (await self.link()).request(message, version=version)

    async def ask_until_answered(self, message: Message, version: int | None = None) -> Any:
        """Like `ask`, but retries until an answer comes. The request may be executed several times."""
        while True:
            try:
                return await self.ask(message, version)
            except LinkError:
                await self.pause(BACKOFF_S_MAX)

    def hang_up(self) -> None:
        """Close the connections. Answers in transit are lost."""
        for host in self._hosts:
            host.hang_up()
        if self._link is not None:
            self._link.close()

    async def pause(self, seconds_max: float) -> None:
        await asyncio.sleep(self.random.uniform(0, seconds_max))

    def note(self, what: str, detail: str = "") -> None:
        self.stage.trace.note(self.name, what, detail)

    async def run(self) -> None:
        """Run until the run is ending and nothing is unfinished."""
        raise NotImplementedError


class ClientObserver:
    """`Observer` of one client's runner. Subclasses override `on_sent` and `on_answer`."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.stage = client.stage
        self._sent: dict[Request, tuple[Message, float]] = {}

    def sent(self, request: Request, message: Message, version: int) -> None:
        self._sent[request] = (message, self.stage.now_s())
        try:
            self.on_sent(message)
        except Violation as violation:
            # Not raised: the client would take it for a failure of its machine, and the run would report that instead.
            asyncio.get_running_loop().call_exception_handler({"message": str(violation), "exception": violation})

    def answered(self, request: Request, response: Any, version: int) -> None:
        message, sent_s = self._sent.pop(request)
        self.on_answer(request, message, response, sent_s)

    def failed(self, request: Request, error: KafkaError) -> None:
        found = self._sent.pop(request, None)
        if found is not None:
            self.client.note("no answer", f"{type(found[0]).__name__.removesuffix('Request')} {type(error).__name__}")
            self.on_failure(found[0])

    def on_sent(self, message: Any) -> None:
        """A request is about to be sent."""

    def on_answer(self, request: Request, message: Any, response: Any, sent_s: float) -> None:
        """`message`, sent at `sent_s`, was answered."""

    def on_failure(self, message: Any) -> None:
        """`message` was sent, and no answer will come."""
