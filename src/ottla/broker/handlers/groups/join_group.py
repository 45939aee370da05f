"""JoinGroup: a member joins a classic group or rejoins it. Parked until all members have joined or the time is over.

v1: rebalance timeout; before, the session timeout counts. v4: a dynamic member without an id gets MEMBER_ID_REQUIRED and an id,
and joins again with it. v5: group.instance.id of static members. v7: protocol type in the response. v8: reason. v9: skip
assignment.
"""

from __future__ import annotations

from ottla.broker.handlers.groups.group_calls import caller_of, check_group_id, code_of
from ottla.broker.requests.context import Handled, RequestContext
from ottla.coordinator.groups.classic.answers import NotAnswered, not_joined
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

REBALANCE_TIMEOUT_SINCE = 1
OF_THE_COORDINATOR = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)
"""Errors of the coordinator, not of the member: as in Apache Kafka, the response has no member id."""


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
