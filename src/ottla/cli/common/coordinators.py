"""Finds the coordinators of groups and transactional ids (FindCoordinator) and sends them requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from enum import IntEnum
from functools import partial
from typing import TypeVar

from ottla.cli.common.cluster import Cluster, refusal
from ottla.errors import KafkaError
from ottla.wire.apis import ApiKey
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

T = TypeVar("T")

_MANY_KEYS_SINCE_VERSION = 4


class CoordinatorKind(IntEnum):
    """The key types of FindCoordinator."""

    GROUP = 0
    TRANSACTION = 1


async def by_coordinator(
    cluster: Cluster,
    kind: CoordinatorKind,
    ids: Iterable[str],
    ask: Callable[[int, list[str]], Awaitable[dict[str, T | KafkaError]]],
) -> dict[str, T | KafkaError]:
    """Ask the coordinator of each of `ids`. Retriable errors are retried; the errors in the result are final."""

    async def locate(wanted: Sequence[str]) -> tuple[dict[int, list[str]], dict[str, KafkaError]]:
        return await _find(cluster, kind, wanted)

    return await cluster.by_place(ids, locate, ask)


async def _find(
    cluster: Cluster, kind: CoordinatorKind, ids: Sequence[str]
) -> tuple[dict[int, list[str]], dict[str, KafkaError]]:
    places: dict[int, list[str]] = {}
    errors: dict[str, KafkaError] = {}
    if (await cluster.any_link()).versions.newest(ApiKey.FIND_COORDINATOR) >= _MANY_KEYS_SINCE_VERSION:
        response: FindCoordinatorResponse = await cluster.ask_any(
            FindCoordinatorRequest(key_type=kind, coordinator_keys=list(ids))
        )
        found = [(each.key, each.node_id, each.error_code, each.error_message) for each in response.coordinators]
    else:
        found = []
        for each in ids:
            response = await cluster.ask_any(FindCoordinatorRequest(key=each, key_type=kind))
            found.append((each, response.node_id, response.error_code, response.error_message))
    for each, broker_id, code, text in found:
        if code:
            errors[each] = refusal(code, f"the coordinator of {kind.name.lower()} {each} cannot be found", text)
        else:
            places.setdefault(broker_id, []).append(each)
    return places, errors


async def each_broker(cluster: Cluster, ask: Callable[[int], Awaitable[T]]) -> dict[int, T]:
    """The answers of all brokers, by id. A broker that answers with a retriable error is asked again."""
    await cluster.metadata([])
    ids = sorted(cluster.brokers)
    answers = await asyncio.gather(*(cluster.retrying(partial(ask, broker_id)) for broker_id in ids))
    return dict(zip(ids, answers, strict=True))
