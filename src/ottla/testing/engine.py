"""Starts, stops and kills a test broker, and implements its helpers: coroutines on an event loop in their own thread.

`Broker` blocks until they are done, `AsyncBroker` awaits them. The engine has no reference to either, so that a broker that a
test does not stop is collected; the engine then ends everything it runs.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ottla.errors import KafkaError, NetworkError, OttlaError, UnreachableError
from ottla.testing.arguments import (
    Headers,
    Text,
    as_bytes,
    check_awaited,
    check_new_topic,
    check_place,
    check_topic,
)
from ottla.testing.background import Background
from ottla.testing.errors import BrokerFailed, NotRunning, without_internals
from ottla.testing.host import Facts, Host, Launch
from ottla.testing.logs import lines_since
from ottla.testing.records import Record
from ottla.testing.security import SecuredBroker, Security, rules_of
from ottla.testing.settings import node_settings, settings_of

if TYPE_CHECKING:  # imported with the first helper call, so that a broker starts sooner
    from ottla.registry.server import RegistryThread
    from ottla.testing.client import Client
    from ottla.testing.faults import Fault
    from ottla.testing.security import Library

T = TypeVar("T")
__tracebackhide__ = True  # for pytest: a test that fails shows the line that called us

_ABANDON_S = 5.0
_REPORT_S = 5.0
REGISTRY_SETTING = "confluent.schema.registry.url"
REPORT = "report"
"""A command of `runner.py`, which is not imported here: it loads the broker."""


class Report(NamedTuple):
    """What a failed test shows of a node or a cluster."""

    faults: list[str]
    """The faults that are active or hold requests, and the requests that they hold."""
    requests: list[str]
    """The requests of clients, with their outcomes."""
    log: list[str]


class Helpers(ABC):
    """An event loop in its own thread, and the helpers that run on it through a `Client`."""

    def __init__(self) -> None:
        self._background: Background | None = None
        self._changing: asyncio.Lock
        self.started: float | None = None
        """When the first start was done."""
        self._registry: RegistryThread | None = None
        self._config: dict[str, object] = {}
        """The settings that the test gives."""

    # The schema registry

    def registry_url(self, servers: str, config: Mapping[str, Any]) -> str:
        """The address of a schema registry for these brokers, which is started now if it was not yet."""
        if self._registry is None:
            try:
                from ottla.config.client import admin_settings
                from ottla.registry.server import RegistryThread
            except ImportError as missing:
                text = f"a schema registry needs the package {missing.name}: pip install 'ottla[registry]'"
                raise ImportError(text, name=missing.name) from None
            self._registry = RegistryThread(admin_settings(servers, config=dict(config), keywords={}))
            self._registry.start()
            if REGISTRY_SETTING not in self._config:  # so that topics can have their schema ids checked
                url = self._registry.url
                self.run(self._help(lambda client: client.set_for_all_brokers(REGISTRY_SETTING, url)))
        return self._registry.url

    def close_registry(self) -> None:
        """Before the brokers stop."""
        registry, self._registry = self._registry, None
        if registry is not None:
            registry.close()

    # The loop

    def begin(self) -> None:
        """Start the loop, if it does not run yet."""
        if self._background is None:
            self._changing = asyncio.Lock()  # one start, stop or kill at a time, also after a cancelled one
            self._background = Background("ottla-testing")
            self._background.start()

    def end(self) -> None:
        """Stop the loop."""
        background, self._background = self._background, None
        if background is not None:
            background.stop()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Block until `work` is done."""
        try:
            return self._on_loop(work).submit(work).result()
        except OttlaError as error:
            raise without_internals(error)  # noqa: B904  # it is the same error

    async def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Await `work` from the caller's loop; cancelling the caller cancels the work."""
        try:
            return await asyncio.wrap_future(self._on_loop(work).submit(work))
        except OttlaError as error:
            raise without_internals(error)  # noqa: B904  # it is the same error

    def run_if_begun(self, work: Coroutine[Any, Any, None]) -> None:
        """Like `run`, but does nothing if the loop was never started."""
        if self._background is None:
            work.close()
        else:
            self.run(work)

    async def wait_if_begun(self, work: Coroutine[Any, Any, None]) -> None:
        if self._background is None:
            work.close()
        else:
            await self.wait(work)

    def _on_loop(self, work: Coroutine[Any, Any, Any]) -> Background:
        if self._background is None:
            work.close()
            raise NotRunning("the broker is not running: start() it, or use it as a context manager")
        return self._background

    def abandon(self) -> None:
        """End everything at once, from any thread, and do not wait for long: it was collected without a `stop`."""
        background = self._background
        if background is None:
            return
        try:
            ending = background.submit(self._abandon())
            if threading.get_ident() != background.thread_id:
                ending.result(_ABANDON_S)
                background.stop(_ABANDON_S)
        except Exception:
            pass  # at interpreter exit anything may fail, and there is no caller to raise to

    def report(self, since: float) -> Report | None:
        """What happened since a time, or since the start if that is later; None if it was never started."""
        if self.started is None:
            return None
        since = max(since, self.started)
        try:
            told = self._background and self._background.submit(self._told(since)).result(_REPORT_S)
        except (OttlaError, TimeoutError):
            told = None  # it has stopped or failed, or hangs: its log is left
        faults, requests = told or ([], [])
        return Report(faults, requests, self.lines_since(since))

    @abstractmethod
    async def _told(self, since: float) -> tuple[list[str], list[str]]:
        """The faults and the requests of what runs."""

    @abstractmethod
    def lines_since(self, since: float) -> list[str]:
        """The lines that were logged since a time."""

    @abstractmethod
    async def _abandon(self) -> None:
        """Kill what runs, and remove temporary data."""

    # Helpers

    @abstractmethod
    async def _help(self, work: Callable[[Client], Awaitable[T]]) -> T:
        """Run `work` with a client; raises why the broker has failed, if it has, instead of a lost connection."""

    # Arguments are checked in the caller's thread, not on the loop, so that a mistake is raised at the caller's line.

    def create_topic(
        self, name: str, partitions: int, config: Mapping[str, object], replication_factor: int | None = None
    ) -> Coroutine[Any, Any, None]:
        check_new_topic(name, partitions, config, replication_factor)
        return self._help(lambda client: client.create_topic(name, partitions, config, replication_factor))

    def delete_topic(self, name: str) -> Coroutine[Any, Any, None]:
        check_topic(name)
        return self._help(lambda client: client.delete_topic(name))

    def topics(self) -> Coroutine[Any, Any, dict[str, int]]:
        return self._help(lambda client: client.topics())

    def produce(
        self, name: str, value: Text, key: Text, partition: int | None, headers: Headers, timestamp: int | None
    ) -> Coroutine[Any, Any, Record]:
        check_topic(name)
        check_place(partition, headers, timestamp)
        key_bytes, value_bytes = as_bytes("key", key), as_bytes("value", value)

        async def work(client: Client) -> Record:
            topic = await client.find_topic(name, may_create=True)
            return await client.produce(topic, partition, key_bytes, value_bytes, headers, timestamp)

        return self._help(work)

    def records(self, name: str) -> Coroutine[Any, Any, list[Record]]:
        from ottla.testing.topic_reader import read_now

        check_topic(name)
        return self._help(lambda client: read_now(client, name))

    def await_records(self, name: str, count: int, timeout_s: float) -> Coroutine[Any, Any, list[Record]]:
        from ottla.testing.topic_reader import await_records

        check_topic(name)
        check_awaited(count, timeout_s)
        return self._help(lambda client: await_records(client, name, count, timeout_s))

    def end_offsets(self, name: str) -> Coroutine[Any, Any, dict[int, int]]:
        check_topic(name)

        async def work(client: Client) -> dict[int, int]:
            return await client.offsets(await client.find_topic(name), "latest")

        return self._help(work)


class Engine(Helpers):
    """The state of one broker. Its coroutines run on its own loop, through `submit`."""

    def __init__(
        self,
        config: Mapping[str, object],
        port: int,
        data: str | None,
        is_process: bool,
        security: Security | None = None,
    ) -> None:
        super().__init__()
        self.secured = None if security is None else SecuredBroker(security)
        node_settings(config, port, "")  # raises a mistake at the line that creates the broker
        self._config = dict(config)
        self._port = port
        self._given_data = None if data is None else Path(data).resolve()
        self._is_process = is_process
        self._host: Host | None = None
        self._client: Client | None = None
        self._last_lines: list[str] = []
        self.data: Path | None = self._given_data
        self.facts: Facts | None = None

    # Users and access

    def client_config(self, user: str, password: str | None, library: Library) -> dict[str, Any]:
        return self._secured().client_config(user, password, library)

    def change_access(
        self, is_allowed: bool, user: str, operations: Sequence[str], names: Mapping[str, str | None], prefixed: bool
    ) -> Coroutine[Any, Any, None]:
        """Add rules of access control."""
        if not self._secured().security.acls:
            raise ValueError("access control is off: give Broker(security=Security(…, acls=True))")
        rules = rules_of(is_allowed, user, operations, names, prefixed)

        async def work(client: Client) -> None:
            from ottla.client.admin.acls import create_acls

            (await create_acls(client.cluster, rules)).raise_first()

        return self._help(work)

    def _secured(self) -> SecuredBroker:
        if self.secured is None:
            raise ValueError("the broker is not secured: give Broker(security=Security(…))")
        return self.secured

    # Start, stop, restart, kill

    @property
    def is_begun(self) -> bool:
        """Whether there is something to stop: a running node, or the data of a killed one."""
        return self._host is not None or (self.facts is not None and self.data is not None)

    @property
    def is_running(self) -> bool:
        return self._host is not None and self._host.failure is None

    @property
    def log_lines(self) -> list[str]:
        return self._last_lines if self._host is None else self._host.log_lines

    async def start(self) -> None:
        async with self._changing:
            await self._start_node()

    async def _start_node(self) -> None:
        if self._host is not None:
            raise NotRunning("the broker is running already: stop() or kill() it first, or restart() it")
        if self.data is None:
            self.data = Path(tempfile.mkdtemp(prefix="ottla-testing-"))
        host = self._new_host()
        settings, scram = node_settings({}, self._port, str(self.data)), []
        if self.secured is not None:
            settings, scram = self.secured.settings(settings), self.secured.scram
        settings = settings | settings_of(self._config)
        launch = Launch(settings, is_synced=self._given_data is not None, scram=scram)
        try:
            facts = await host.start(launch)
        except BaseException:
            self._last_lines = host.log_lines
            if self.facts is None:
                self._remove_data()
            raise
        self._host, self.facts = host, facts
        if self.started is None:
            self.started = time.time()
        first = facts.bootstrap_servers.partition(",")[0]
        self._port = int(first.rpartition(":")[2])  # the same port after a restart

    def _new_host(self) -> Host:
        if self._is_process:
            from ottla.testing.process_host import ProcessHost

            return ProcessHost()
        from ottla.testing.thread_host import ThreadHost

        return ThreadHost()

    async def stop(self) -> None:
        """Stop the node if it runs, and remove temporary data; `BrokerFailed` if it had stopped by itself."""
        async with self._changing:
            try:
                await self._stop_node()
            finally:
                self._remove_data()

    async def kill(self) -> None:
        async with self._changing:
            host = self._running()
            self._forget(host)
            await host.kill()

    async def restart(self) -> None:
        async with self._changing:
            self._running()
            await self._stop_node()
            await self._start_node()

    async def _stop_node(self) -> None:
        host = self._host
        if host is None:
            return
        self._forget(host)
        try:
            await host.stop()
        except OttlaError as error:
            raise host.failure or BrokerFailed(f"the broker did not shut down cleanly: {error}") from error
        finally:
            self._last_lines = host.log_lines
        if host.failure is not None:
            raise host.failure

    def _forget(self, host: Host) -> None:
        self._last_lines = host.log_lines
        if self._client is not None:
            self._client.close()
        self._host = self._client = None

    def _remove_data(self) -> None:
        if self._given_data is None and self.data is not None:
            shutil.rmtree(self.data, ignore_errors=True)
            self.data = None
        if self.secured is not None and self._host is None:
            self.secured.remove()

    def _running(self) -> Host:
        host = self._host
        if host is None:
            raise NotRunning("the broker is not running: it was stopped or killed. start() it again")
        if host.failure is not None:
            raise host.failure
        return host

    async def _abandon(self) -> None:
        host, self._host = self._host, None
        try:
            if host is not None:
                await host.kill()
        finally:
            self._remove_data()

    # Helpers

    async def _help(self, work: Callable[[Client], Awaitable[T]]) -> T:
        """Run `work`; if the broker has stopped by itself, raise that instead of the lost connection."""
        host = self._running()
        from ottla.testing.client import Client

        if self._client is None:
            assert self.facts is not None
            security = {} if self.secured is None else self.secured.client_config()
            self._client = Client(self.facts.bootstrap_servers.partition(",")[0], security=security)
        try:
            return await work(self._client)
        except KafkaError as error:
            if isinstance(error, NetworkError | UnreachableError):
                await host.settle()
            if host.failure is not None:
                raise host.failure from error
            raise

    async def _told(self, since: float) -> tuple[list[str], list[str]]:
        faults, requests = await self.tell(REPORT, {"since": since})
        return faults, requests

    def lines_since(self, since: float) -> list[str]:
        return lines_since(self.log_lines, since)

    async def tell(self, name: str, values: dict[str, Any]) -> Any:
        """Send a command to the node; returns its result."""
        return await self._running().command(name, values)

    async def await_hits(self, fault: Fault, count: int, timeout_s: float) -> int:
        hits = await self.tell("await_hits", {"id": fault.id, "count": count, "timeout_s": timeout_s})
        return fault.check_hits(hits, count, timeout_s)
