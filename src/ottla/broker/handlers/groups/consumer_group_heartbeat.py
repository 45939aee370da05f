"""ConsumerGroupHeartbeat: a member of the consumer protocol joins, stays or leaves, and gets its assignment.

v1: members generate their member id themselves; subscription by regular expression.
"""

from __future__ import annotations

from contextlib import suppress

from ottla.broker.handlers.groups.group_calls import caller_of, code_of
from ottla.broker.requests.context import Handled, RequestContext
from ottla.broker.requests.scheduler import SMALL_CALL_BYTES, in_slices
from ottla.coordinator.groups.consumer.expressions import compiled
from ottla.coordinator.groups.consumer.group import JOIN_EPOCH
from ottla.env import OffLoop, Steps
from ottla.errors import KafkaError
from ottla.metadata.acls import Operation, ResourceType
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse


def handle(context: RequestContext, request: ConsumerGroupHeartbeatRequest) -> Handled:
    for name in request.subscribed_topic_names or ():
        context.require(Operation.DESCRIBE, ResourceType.TOPIC, name)
    if request.subscribed_topic_regex:
        return in_slices(context, _compile_first(context, request, request.subscribed_topic_regex))
    return _ask(context, request)


def _compile_first(context: RequestContext, request: ConsumerGroupHeartbeatRequest, expression: str) -> Steps[Handled]:
    """Compile one expression at a time, for connections in turn and none that has gone. The coordinator finds the outcome."""
    yield OffLoop(lambda: _compile(expression), SMALL_CALL_BYTES)
    return _ask(context, request)


def _compile(expression: str) -> None:
    with suppress(KafkaError):  # the coordinator refuses it, after checks that come first
        compiled(expression)


def _ask(context: RequestContext, request: ConsumerGroupHeartbeatRequest) -> Handled:
    caller = caller_of(context)
    return context.services.coordinators.groups.ask(
        request.group_id,
        lambda shard, reply, now: shard.consumer.heartbeat(request, caller, reply, now),
        may_write=request.member_epoch <= JOIN_EPOCH,  # joins and leaves do; most others only keep the session alive
    )


def refuse(
    context: RequestContext, request: ConsumerGroupHeartbeatRequest, error: KafkaError
) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=code_of(error), error_message=str(error))
