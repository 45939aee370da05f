"""Creates topics that a Metadata request names and that do not exist (auto.create.topics.enable).

They get the cluster's defaults, internal topics the settings of their kind. Apache Kafka's broker answers
UNKNOWN_TOPIC_OR_PARTITION at once and creates the topic in the background; the client asks again. Here the response waits until
the topic exists, which saves the client a round trip and a log line.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from ottla.broker.channel.forwarded import ForwardedRequest
from ottla.broker.runtime.coordinators.internal_topics import creatable, internal_topic
from ottla.errors.codes import ErrorCode
from ottla.ids import INTERNAL_TOPICS, topic_name_fault
from ottla.wire.apis import APIS
from ottla.wire.elements import MANY_ELEMENTS
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest

if TYPE_CHECKING:
    from ottla.broker.requests.context import RequestContext
    from ottla.broker.requests.scheduler import Pauses
    from ottla.broker.services import Services

_DEFAULT = -1


async def create_missing(context: RequestContext, names: Sequence[str], pauses: Pauses) -> dict[str, int]:
    """Create the topics `names` in the name of the client that asks; returns the error code of each that was not created."""
    services = context.services
    make = partial(_wanted, services, names)
    wanted, codes = await pauses.off_loop(make) if len(names) > MANY_ELEMENTS else make()
    if not wanted:
        return codes
    request = CreateTopicsRequest(topics=wanted)
    response = await services.channel.forward(ForwardedRequest.of(context, request, APIS[request.KEY].newest))
    await services.loader.caught_up()
    for result in response.topics:
        if result.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            codes[result.name] = result.error_code
    return codes


def _wanted(services: Services, names: Sequence[str]) -> tuple[list[CreatableTopic], dict[str, int]]:
    """The topics to create, and the error codes of those whose names are not valid."""
    codes: dict[str, int] = {name: ErrorCode.INVALID_TOPIC_EXCEPTION for name in names if topic_name_fault(name) is not None}
    wanted: list[CreatableTopic] = []
    for name in dict.fromkeys(names):
        internal = internal_topic(name, services.settings.current)
        if internal is not None:
            wanted.append(creatable(name, internal))
        elif name not in codes and name not in INTERNAL_TOPICS:
            wanted.append(CreatableTopic(name=name, num_partitions=_DEFAULT, replication_factor=_DEFAULT))
    return wanted, codes
