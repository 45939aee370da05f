"""JoinGroup: become a member of a classic group, or rejoin it. Answered when all members have joined, or time is up."""

from __future__ import annotations

from ottla.broker.handlers.groups.group_calls import caller_of, check_group_id, code_of
from ottla.broker.request import Handled, RequestContext
from ottla.coordinator.groups.classic.answers import NotAnswered, not_joined
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

REBALANCE_TIMEOUT_SINCE = 1
OF_THE_COORDINATOR = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)
"""Refusals that say nothing of the member: Apache does not name it in them."""


def handle(context: RequestContext, request: JoinGroupRequest) -> Handled:
    check_group_id(request.group_id)
    config = context.services.settings.current
    if not config.group_min_session_timeout_ms <= request.session_timeout_ms <= config.group_max_session_timeout_ms:
        raise KafkaError(
            ErrorCode.INVALID_SESSION_TIMEOUT,
            f"a member of group {request.group_id} wants a session timeout of {request.session_timeout_ms} ms: this broker "
            f"takes {config.group_min_session_timeout_ms} to {config.group_max_session_timeout_ms} ms "
            "(group.min.session.timeout.ms, group.max.session.timeout.ms)",
        )
    if context.version < REBALANCE_TIMEOUT_SINCE:
        request.rebalance_timeout_ms = request.session_timeout_ms
    caller = caller_of(context)
    return context.services.coordinators.groups.ask(
        request.group_id, lambda shard, reply, now: shard.join(request, caller, reply, now)
    )


def refuse(context: RequestContext, request: JoinGroupRequest, error: KafkaError) -> JoinGroupResponse:
    code = code_of(error)
    if isinstance(error, NotAnswered):
        return not_joined(code, error.member_id, context.version)
    return not_joined(code, "" if code in OF_THE_COORDINATOR else request.member_id, context.version)
