"""`Broker`: a Kafka broker for tests, as a context manager. The public face of this package; `engine.py` does the work."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any

from ottla.testing.aio import AsyncBroker
from ottla.testing.engine import Engine, Report
from ottla.testing.errors import BrokerFailed, NotRunning, TimedOut
from ottla.testing.host import Facts
from ottla.testing.security import Library, Security
from ottla.testing.topic_helpers import TopicHelpers

if TYPE_CHECKING:
    from ottla.testing.faults import Faults

__tracebackhide__ = True  # for pytest: a test that fails shows the line that called us

__all__ = ["Broker", "BrokerFailed", "NotRunning", "TimedOut"]


class Broker(TopicHelpers):
    """One Kafka broker, a single-node cluster, on a free port of 127.0.0.1.

    Use `with Broker() as broker:` in tests without an event loop, `async with Broker() as broker:` in those with one. It runs
    in a thread of this process, or with `process=True` in a child process. `config` are settings of `server.properties`. Its
    data is temporary, unless `data` names a folder, which is kept. `security` asks for TLS, logins and access control: True,
    or a `Security`.

    If it stops by itself (a broken invariant, a failed disk, a child that died), `stop` and every helper raise `BrokerFailed`.
    """

    def __init__(
        self,
        config: Mapping[str, object] | None = None,
        *,
        port: int = 0,
        data: str | os.PathLike[str] | None = None,
        process: bool = False,
        security: Security | bool = False,
    ) -> None:
        wanted = Security() if security is True else security or None
        engine = Engine(config or {}, port, None if data is None else os.fspath(data), process, wanted)
        super().__init__(engine)
        self._engine: Engine = engine
        self.aio = AsyncBroker(engine)
        """The same helpers as coroutines."""

        def tell(name: str, /, **values: Any) -> Any:
            return engine.run(engine.tell(name, values))

        self._tell = tell
        # A broker that is never stopped ends with the interpreter, or when it is collected.
        weakref.finalize(self, engine.abandon)

    def __repr__(self) -> str:
        facts = self._engine.facts
        where = "not started" if facts is None else facts.bootstrap_servers if self.is_running else "stopped"
        return f"<Broker {where}>"

    @cached_property
    def faults(self) -> Faults:
        """Fault injection: `broker.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", times=1)`."""
        from ottla.testing.faults import Faults

        engine = self._engine
        return Faults(self._tell, lambda: engine.run(engine.topics()))

    # Address and state

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients, as HOST:PORT. Stays the same after a restart."""
        return self._facts.bootstrap_servers

    @property
    def host(self) -> str:
        """The host of the address for clients."""
        return self.bootstrap_servers.partition(",")[0].rpartition(":")[0]

    @property
    def port(self) -> int:
        """The port for clients."""
        return int(self.bootstrap_servers.partition(",")[0].rpartition(":")[2])

    @property
    def schema_registry_url(self) -> str:
        """The address of a schema registry for this broker, started when first asked for. Needs `ottla[registry]`."""
        config = {} if self._engine.secured is None else self.client_config()
        return self._engine.registry_url(self.bootstrap_servers, config)

    @property
    def cluster_id(self) -> str:
        """The id of its cluster, a UUID in Kafka's form; random for each broker."""
        return self._facts.cluster_id

    @property
    def node_id(self) -> int:
        """The id of its node."""
        return self._facts.node_id

    @property
    def data(self) -> Path:
        """The folder with its data."""
        if self._engine.data is None:
            raise NotRunning("the broker has no data: it was not started, or its temporary folder has been removed")
        return self._engine.data

    @property
    def is_running(self) -> bool:
        """Whether it answers requests: it was started, and neither stopped nor failed since."""
        return self._engine.is_running

    @property
    def log_lines(self) -> list[str]:
        """The last lines that it has logged, with the requests it refused."""
        return list(self._engine.log_lines)

    def _report(self, since: float) -> Report | None:
        """For the pytest plugin: what happened since a time."""
        return self._engine.report(since)

    @property
    def _facts(self) -> Facts:
        if self._engine.facts is None:
            raise NotRunning("the broker was not started: start() it, or use it as a context manager")
        return self._engine.facts

    # Start, stop, restart, kill

    def start(self) -> None:
        """Start it; returns when it answers requests."""
        self._engine.begin()
        try:
            self._engine.run(self._engine.start())
        except Exception:
            if not self._engine.is_begun:
                self._engine.end()
            raise

    def stop(self) -> None:
        """Shut it down cleanly and remove temporary data. Stopping twice is harmless."""
        self._engine.close_registry()
        try:
            self._engine.run_if_begun(self._engine.stop())
        finally:
            self._engine.end()

    def restart(self) -> None:
        """Shut it down cleanly and start it again, on the same port, with the same data. Faults are removed."""
        self._engine.run(self._engine.restart())

    def kill(self) -> None:
        """End it at once, as `kill -9` does. `start()` then recovers its data and uses the same port."""
        self._engine.run(self._engine.kill())

    def __enter__(self) -> Broker:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    async def __aenter__(self) -> Broker:
        await self.aio.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aio.stop()

    # Helpers

    def client_config(self, user: str = "admin", password: str | None = None, library: Library = "ottla") -> dict[str, Any]:
        """The settings with which a client logs in to a broker with `security`, as `user`.

        They are Kafka's: `Producer(broker.bootstrap_servers, config=broker.client_config("alice"))`. `library` asks for those
        of confluent-kafka, or for the keywords of kafka-python or aiokafka. Give `password` to try a wrong one.
        """
        return self._engine.client_config(user, password, library)

    def allow(
        self,
        user: str,
        *operations: str,
        topic: str | None = None,
        group: str | None = None,
        transactional_id: str | None = None,
        cluster: bool = False,
        prefixed: bool = False,
    ) -> None:
        """Allow a user operations (read, write, create, delete, alter, describe, all …) on what is named; `*` names all.

        For a broker with `Security(acls=True)`. With `prefixed`, names are the beginnings of names.
        """
        names = {"topic": topic, "group": group, "transactional_id": transactional_id, "cluster": "" if cluster else None}
        self._engine.run(self._engine.change_access(True, user, operations, names, prefixed))

    def deny(
        self,
        user: str,
        *operations: str,
        topic: str | None = None,
        group: str | None = None,
        transactional_id: str | None = None,
        cluster: bool = False,
        prefixed: bool = False,
    ) -> None:
        """Deny what `allow` would allow; a denial wins over every permission."""
        names = {"topic": topic, "group": group, "transactional_id": transactional_id, "cluster": "" if cluster else None}
        self._engine.run(self._engine.change_access(False, user, operations, names, prefixed))

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, object] = MappingProxyType({})) -> None:
        """Create a topic. `config` are topic settings."""
        self._engine.run(self._engine.create_topic(name, partitions, config))
