"""The requests to a replica of the metadata log: elections, Fetch, FetchSnapshot, and changes of the voters.

Served on controllers' listeners alone. This node's replica answers them: see `ottla.raft.requests`, one file per API, with
what each version changed.
"""

from __future__ import annotations

from typing import Any

from ottla.broker.requests.context import Pending, RequestContext
from ottla.errors import KafkaError
from ottla.wire.apis import APIS
from ottla.wire.base import Message


def handle(context: RequestContext, request: Message) -> Pending:
    return context.services.quorum.ask(request, context.version, context.connection.listener)


def refuse(context: RequestContext, request: Message, error: KafkaError) -> Message:
    response: Any = APIS[context.api_key].response_class()
    response.error_code = error.code
    return response  # type: ignore[no-any-return]
