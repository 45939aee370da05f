"""The requests of brokers and controllers to the active controller, which decides.

AlterPartition          the leader of partitions proposes a new ISR, or reports that it has recovered from an unclean
                        election. v3: the epoch of each broker in the ISR, so that a restarted broker does not get in with
                        what it had before.
AllocateProducerIds     gives a broker a block of producer ids.
AssignReplicasToDirs    a broker reports in which log directories it keeps its replicas.
BrokerHeartbeat         a broker extends its session, asks to be unfenced or to shut down, and reports failed directories.
                        v1: offline log directories. v2: cordoned log directories.
BrokerRegistration      a broker registers, fenced, and gets its epoch. v1: brokers that still use ZooKeeper. v2: log
                        directories. v3: the epoch before a clean shutdown. v4: features whose lowest level is 0.
ControllerRegistration  a controller registers its endpoints and supported features.
"""

from __future__ import annotations

from typing import Any

from ottla.broker.handlers.admin.controller_calls import ask_own_controller
from ottla.broker.requests.context import Handled, RequestContext
from ottla.errors import KafkaError
from ottla.wire.apis import APIS
from ottla.wire.base import Message


def handle(context: RequestContext, request: Message) -> Handled:
    return ask_own_controller(context, request)


def refuse(context: RequestContext, request: Message, error: KafkaError) -> Message:
    response: Any = APIS[context.api_key].response_class()
    response.error_code = error.code
    if hasattr(response, "error_message"):
        response.error_message = str(error)
    return response  # type: ignore[no-any-return]
