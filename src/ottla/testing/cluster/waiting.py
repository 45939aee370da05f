"""Waits for states of a test's cluster: who leads, who coordinates, whether all is well. Run on the engine's loop.

The metadata names a node that was just killed as leader until its session is over, so an answer counts only if that node runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Final, TypeVar

from ottla.client.admin.cluster_state import describe_cluster
from ottla.client.admin.quorum import describe_metadata_quorum
from ottla.client.health import cluster_state, problems_of
from ottla.client_core.coordinators import CoordinatorKind
from ottla.errors import KafkaError, UnknownTopicOrPartitionError
from ottla.testing.errors import TimedOut

if TYPE_CHECKING:
    from ottla.client.admin.quorum import QuorumInfo
    from ottla.testing.client import Client
    from ottla.testing.cluster.engine import ClusterEngine

T = TypeVar("T")

_LOOK_AGAIN_S: Final = 0.05
_SHOWN: Final = 8


class NotYet(Exception):
    """What is awaited is not there. The text says what is there instead."""


async def leader(engine: ClusterEngine, topic: str, partition: int, timeout_s: float) -> int:
    """The node that leads a partition."""

    async def look(client: Client) -> int:
        found = await client.find_topic(topic)
        if partition not in found.leaders:
            there = f"the topic has partitions 0 to {len(found.leaders) - 1}"
            raise UnknownTopicOrPartitionError(f"{topic}-{partition} does not exist: {there}")
        return _live(engine, found.leaders[partition], f"{topic}-{partition} has no leader", "leads it")

    return await _until(engine, look, timeout_s, f"a leader of {topic}-{partition}")


async def controller(engine: ClusterEngine, timeout_s: float) -> int:
    """The node with the active controller."""

    async def look(client: Client) -> int:
        quorum = await describe_metadata_quorum(client.cluster)
        return _live(engine, quorum.leader_id, "the metadata quorum has no leader", "leads the metadata quorum")

    return await _until(engine, look, timeout_s, "an active controller")


async def coordinator(engine: ClusterEngine, group: str, timeout_s: float) -> int:
    """The node that coordinates a consumer group."""

    async def look(client: Client) -> int:
        places, errors = await client.cluster.coordinators(CoordinatorKind.GROUP, [group])
        if errors:
            raise NotYet(str(errors[group]))
        return _live(engine, next(iter(places)), f"group {group} has no coordinator", "coordinates it")

    return await _until(engine, look, timeout_s, f"a coordinator of group {group}")


async def until_healthy(engine: ClusterEngine, timeout_s: float) -> None:
    """Wait until all nodes serve, have the newest metadata, and every replica is in sync."""

    async def look(client: Client) -> None:
        _raise_found(
            f"node {each.node_id}: {each.condition}" for each in engine.nodes.values() if each not in engine.answering()
        )
        quorum = await _raise_problems(engine, client)
        if quorum is not None:
            replicas = {each.id: each.log_end_offset for each in (*quorum.voters, *quorum.observers)}
            _raise_found(
                f"node {node} does not have the newest metadata"
                for node in engine.nodes
                if replicas.get(node, -1) < quorum.high_watermark
            )
        # The broker that was asked may have been paused a moment ago, and told what it knew then. Now it has caught up.
        await _raise_problems(engine, client)

    await _until(engine, look, timeout_s, "a healthy cluster")


async def _raise_problems(engine: ClusterEngine, client: Client) -> QuorumInfo | None:
    """Raise `NotYet` with all that is wrong with the cluster by one broker's metadata; return the quorum."""
    state = await cluster_state(client.cluster)
    unregistered = [f"node {node} is not registered" for node in engine.nodes if node not in state.described.nodes]
    _raise_found(unregistered + [each.text for each in problems_of(state)])
    return state.quorum


def _raise_found(found: Iterable[str]) -> None:
    problems = list(found)
    if problems:
        more = f" (and {len(problems) - _SHOWN} more)" if len(problems) > _SHOWN else ""
        raise NotYet("; ".join(problems[:_SHOWN]) + more)


async def until_fenced(engine: ClusterEngine, node_id: int, timeout_s: float) -> None:
    """Wait until the controller has noticed that a node is gone."""
    engine.node(node_id)

    async def look(client: Client) -> None:
        described = await describe_cluster(client.cluster, include_fenced_brokers=True)
        if node_id in described.nodes and not described.nodes[node_id].is_fenced:
            raise NotYet(f"the controller still counts on it, and {engine.node(node_id).condition}")

    await _until(engine, look, timeout_s, f"node {node_id} to be fenced")


def _live(engine: ClusterEngine, node_id: int, none: str, does: str) -> int:
    state = engine.nodes.get(node_id)
    if state is None:
        raise NotYet(none)
    if not state.is_running or state.is_paused:
        raise NotYet(f"by the metadata node {node_id} {does}, but {state.condition}")
    return node_id


async def _until(engine: ClusterEngine, look: Callable[[Client], Awaitable[T]], timeout_s: float, awaited: str) -> T:
    """What `look` returns as soon as it raises no `NotYet`; `TimedOut`, with the last one's text, if that takes too long."""
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + timeout_s
    reason = "nothing has answered"
    while True:
        engine.raise_failure()
        try:
            async with asyncio.timeout_at(max(deadline_s, loop.time() + _LOOK_AGAIN_S)):
                return await engine.help(look)
        except NotYet as not_yet:
            reason = str(not_yet)
        except KafkaError as error:
            if isinstance(error, UnknownTopicOrPartitionError):
                raise
            reason = str(error)
        except TimeoutError:
            pass
        if loop.time() >= deadline_s:
            raise TimedOut(f"waited {timeout_s:g} s for {awaited}: {reason}")
        await asyncio.sleep(_LOOK_AGAIN_S)
