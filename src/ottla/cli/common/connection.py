"""Runs a verb's asynchronous work on an event loop with a connected cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from ottla.cli.common.output import warn
from ottla.cli.common.settings import ClientSettings
from ottla.client import cluster as opening
from ottla.client.cluster import Cluster, Wait
from ottla.client.world import ClientWorld, real_client_world
from ottla.client_core.machine import Channel
from ottla.env.net import Network
from ottla.env.real.net import RealNetwork
from ottla.env.real.tls_errors import protocol_mismatch
from ottla.errors import KafkaError, UnreachableError, exception_of
from ottla.errors.codes import ErrorCode
from ottla.errors.texts import listed
from ottla.link import LinkError

T = TypeVar("T")

SILENT_S = 3.0
"""How long a request may go without an answer before a line says so."""
ANSWER_S = 10.0
"""How long a request may go without an answer if there is no active controller. An election takes a few seconds."""
KNOCK_S = 1.0
"""How long a broker may take to accept a connection, to count as up in an error."""
_LOOK_S = 0.25


def make_network() -> Network:
    """The network that verbs connect over. Tests replace this function."""
    return RealNetwork()


def client_world() -> ClientWorld:
    """The world of clients that verbs make."""
    return real_client_world()._replace(network=make_network())


def open_cluster(settings: ClientSettings) -> Cluster:
    """The cluster of `settings`. A person waits for the answer, so it is not waited for brokers that are not there."""
    return opening.open_cluster(client_world(), settings.client, waits_for_brokers=False)


def with_cluster(settings: ClientSettings, work: Callable[[Cluster], Awaitable[T]], is_patient: bool = False) -> T:
    """Run `work` with the cluster of `settings`, and always close its connections.

    If a request goes unanswered for `SILENT_S`, one line on standard error says what is waited for. If it goes unanswered for
    `ANSWER_S` and the cluster has no active controller, the command fails and says so. It does not if default.api.timeout.ms
    was given (by --timeout too), or with `is_patient`: for commands that go on when brokers are back.
    """

    async def run() -> T:
        cluster = open_cluster(settings)
        watch = _Watch(cluster, settings, gives_up=not is_patient and "default.api.timeout.ms" not in settings.properties)
        watching = asyncio.create_task(watch.run())
        try:
            return await work(cluster)
        except asyncio.CancelledError:
            if watch.failure is None:
                raise
            raise watch.failure from None
        finally:
            watching.cancel()
            cluster.close()

    try:
        return asyncio.run(run())
    except UnreachableError:
        if mismatch := protocol_mismatch(settings.properties, prefix=""):
            raise UnreachableError(f"no broker can be reached: {mismatch} (--command-config takes settings)") from None
        raise


class _Watch:
    """Looks at the requests of a command that have no answer. Ends the task that made it with `failure`."""

    def __init__(self, cluster: Cluster, settings: ClientSettings, gives_up: bool) -> None:
        self.failure: KafkaError | None = None
        self._cluster = cluster
        self._settings = settings
        self._gives_up = gives_up
        self._command = asyncio.current_task()

    async def run(self) -> None:
        """Say what is waited for, once. Then end the command if nothing it waits for can come."""
        wait = await self._silent_for(SILENT_S)
        warn(waiting_text(self._cluster, wait))
        if not self._gives_up or self._cluster.is_of_controllers or await self._has_controller():
            return
        wait = await self._silent_for(SILENT_S)  # asking has taken the rest of ANSWER_S
        self.failure = exception_of(ErrorCode.REQUEST_TIMED_OUT, await self._reason(wait))
        assert self._command is not None
        self._command.cancel()

    async def _silent_for(self, limit_s: float) -> Wait:
        """The request without an answer for this long, as soon as there is one."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(_LOOK_S, SILENT_S))
            wait = self._cluster.waits.oldest(loop.time())
            if wait is not None and loop.time() - wait.since_s >= limit_s:
                return wait

    async def _has_controller(self) -> bool:
        """Whether the quorum has a leader. Asked over other connections: a broker answers the requests of one in turn."""
        from ottla.client.admin.quorum import describe_metadata_quorum  # late: few commands get here

        other = open_cluster(self._settings)
        try:
            async with asyncio.timeout(ANSWER_S - SILENT_S):
                return (await describe_metadata_quorum(other)).leader_id >= 0
        except TimeoutError:
            return False
        except KafkaError as error:  # an older broker, one that is gone, or one that refuses to say
            return error.code != ErrorCode.REQUEST_TIMED_OUT
        finally:
            other.close()

    async def _reason(self, wait: Wait) -> str:
        silent_s = asyncio.get_running_loop().time() - wait.since_s
        what = f"no answer to {wait.api} within {silent_s:.0f} s" if wait.api else str(wait.reason).removesuffix(".")
        if not self._cluster.brokers and wait.reason is not None:  # nothing is known of the cluster: no broker has answered
            return f"{what}: {wait.reason}" if wait.api else what
        gone = [node for node in self._cluster.brokers.values() if not await self._is_there(node.id)]
        nodes = listed([f"{node.id} at {node.host}:{node.port}" for node in gone])
        missing = f" {'Broker' if len(gone) == 1 else 'Brokers'} {nodes} cannot be reached." if gone else ""
        return (
            f"{what}, and the cluster has no active controller.{missing} Start a majority of the controllers; until then only "
            "what brokers know can be shown. To wait longer: --command-property default.api.timeout.ms=60000"
        )

    async def _is_there(self, node_id: int) -> bool:
        try:
            async with asyncio.timeout(KNOCK_S):
                await self._cluster.pool.link(node_id, Channel.DATA)
        except (LinkError, TimeoutError):
            return False
        return True


def waiting_text(cluster: Cluster, wait: Wait) -> str:
    """`waiting for broker 2 at host:9092: it has not answered ListGroups yet`."""
    if not wait.api:
        return f"trying again: {wait.reason}"
    if wait.is_for_controller:
        who, silent = "a controller", f"none has answered {wait.api} yet; see that a majority of the controllers is up"
    else:
        node = cluster.brokers.get(wait.node_id)
        kind = "controller" if cluster.is_of_controllers else "broker"
        who = f"a {kind}" if node is None else f"{kind} {node.id} at {node.host}:{node.port}"
        silent = f"it has not answered {wait.api} yet"
    return f"waiting for {who}: {silent if wait.reason is None else wait.reason}"
