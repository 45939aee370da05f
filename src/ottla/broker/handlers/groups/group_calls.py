"""What the handlers of groups share: who asks, and how the log's refusals are told to clients of a coordinator."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

from ottla.broker.handlers.cluster.cluster_view import GROUP_OPERATIONS
from ottla.broker.request import RequestContext
from ottla.coordinator.contract import Caller
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode

logger = logging.getLogger("ottla.coordinator")

_AS_COORDINATOR: Final[dict[int, int]] = {
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""What an error of the coordinator's own partition means to its clients, who know nothing of that partition."""


REPEATED_MEMBERS_MAX = 10_000
"""How many members groups that are named again may have together, in one answer."""


def caller_of(context: RequestContext) -> Caller:
    """Who asks, as groups remember it."""
    return Caller(context.client_id or "", f"/{context.connection.peer[0]}", context.version)


def check_group_id(group_id: str) -> None:
    """`KafkaError` for a group that nobody can be a member of."""
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "a group needs an id: set group.id")


def code_of(error: KafkaError) -> int:
    """The code by which a client is told why its coordinator could not do what it was asked."""
    if error.code == ErrorCode.MESSAGE_TOO_LARGE:
        logger.warning("a request is refused: %s", error)  # its code says nothing to its client
    return _AS_COORDINATOR.get(error.code, error.code)


class Described(Protocol):
    """A group in the answer to a request that describes groups."""

    authorized_operations: int
    error_code: int
    members: list[Any]


D = TypeVar("D", bound=Described)


async def describe_each(
    group_ids: Sequence[str], describe: Callable[[str], Awaitable[D]], are_operations_wanted: bool
) -> list[D]:
    """The groups as `describe` tells of them, one after the other."""
    described: dict[str, D] = {}
    for group_id in dict.fromkeys(group_ids):
        group = described[group_id] = await describe(group_id)
        if are_operations_wanted and not group.error_code:
            group.authorized_operations = GROUP_OPERATIONS
        await asyncio.sleep(0)  # others have their turn
    return as_often_as_named(group_ids, described)


def as_often_as_named(group_ids: Sequence[str], described: Mapping[str, D]) -> list[D]:
    """A group that is named twice is told twice, as Kafka does; but not so often that the answer has no end."""
    answers: list[D] = []
    told: set[str] = set()
    members_left = REPEATED_MEMBERS_MAX
    for group_id in group_ids:
        group = described[group_id]
        if group_id in told:
            members_left -= 1 + len(group.members)
            if members_left < 0:
                continue
        told.add(group_id)
        answers.append(group)
    return answers
