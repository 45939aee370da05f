"""Shared by the handlers of groups: the caller of a request, and error codes of the log translated for clients."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol, TypeVar

from ottla.broker.handlers.cluster.cluster_view import authorized_operations
from ottla.broker.requests.context import RequestContext
from ottla.broker.requests.scheduler import Pauses
from ottla.coordinator.contract import Caller
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.acls import Operation, ResourceType

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
"""Error of the coordinator's own partition → error for its clients, who do not see that partition."""


REPEATED_MEMBERS_MAX = 10_000
"""How many members the repeated groups of one response may have together."""


def caller_of(context: RequestContext) -> Caller:
    """The client id, host and request version of a caller, as groups store them, and which topics it may see."""
    client_id, host, grants = context.client_id or "", f"/{context.connection.peer[0]}", context.grants
    if grants is None:
        return Caller(client_id, host, context.version)
    may_describe = partial(context.allows, Operation.DESCRIBE, ResourceType.TOPIC, is_silent=True)
    return Caller(client_id, host, context.version, may_describe, grants.authorizer.version)


def check_group_id(group_id: str) -> None:
    """Raise INVALID_GROUP_ID for an empty group id."""
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "a group needs an id: set group.id")


def code_of(error: KafkaError) -> int:
    """The error code for the client of a coordinator."""
    if error.code == ErrorCode.MESSAGE_TOO_LARGE:
        logger.warning("a request is refused: %s", error)  # the client gets UNKNOWN_SERVER_ERROR, which does not say why
    return _AS_COORDINATOR.get(error.code, error.code)


class Described(Protocol):
    """A group in the response of DescribeGroups or ConsumerGroupDescribe."""

    authorized_operations: int
    error_code: int
    members: list[Any]


D = TypeVar("D", bound=Described)


async def describe_each(
    context: RequestContext, group_ids: Sequence[str], describe: Callable[[str], Awaitable[D]], are_operations_wanted: bool
) -> list[D]:
    """Call `describe` for each group, one after the other; each group once, however often it is named."""
    described: dict[str, D] = {}
    pauses = Pauses(context)
    for group_id in dict.fromkeys(group_ids):
        group = described[group_id] = await describe(group_id)
        if are_operations_wanted and not group.error_code:
            group.authorized_operations = authorized_operations(context, ResourceType.GROUP, group_id)
        await pauses.here()
    return as_often_as_named(group_ids, described)


def as_often_as_named(group_ids: Sequence[str], described: Mapping[str, D]) -> list[D]:
    """List a group as often as it is named, as Kafka does, up to `REPEATED_MEMBERS_MAX` members of repeated groups."""
    answers: list[D] = []
    listed: set[str] = set()
    members_left = REPEATED_MEMBERS_MAX
    for group_id in group_ids:
        group = described[group_id]
        if group_id in listed:
            members_left -= 1 + len(group.members)
            if members_left < 0:
                continue
        listed.add(group_id)
        answers.append(group)
    return answers
