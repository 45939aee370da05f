"""AddRaftVoter and RemoveRaftVoter on a broker's listener: forwarded to the quorum's leader, which changes its voters.

AddRaftVoter v1: AckWhenCommitted. RemoveRaftVoter has only version 0.
"""

from __future__ import annotations

from typing import Any

from ottla.broker.handlers.admin.controller_calls import ask_controller
from ottla.broker.requests.context import Handled, RequestContext
from ottla.errors import KafkaError
from ottla.wire.apis import APIS
from ottla.wire.base import Message


def handle(context: RequestContext, request: Message) -> Handled:
    return ask_controller(context, request, getattr(request, "timeout_ms", None))


def refuse(context: RequestContext, request: Message, error: KafkaError) -> Message:
    response = APIS[context.api_key].response_class()
    fields: Any = response  # which the responses of these APIs have alike
    fields.error_code, fields.error_message = error.code, str(error)
    return response
