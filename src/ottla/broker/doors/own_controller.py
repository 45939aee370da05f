"""What this node's own controller answers: its decision, or, to changes of the quorum's voters, its replica's answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ottla.broker.requests.context import future_of
from ottla.wire.api_table import ApiKey
from ottla.wire.base import Message

if TYPE_CHECKING:
    from ottla.broker.hosts.controller import ControllerHost

VOTER_CHANGES: Final = frozenset({ApiKey.ADD_RAFT_VOTER, ApiKey.REMOVE_RAFT_VOTER})
"""The forwardable APIs that the quorum's leader answers itself: their records are not the controller's."""
READS: Final = frozenset({ApiKey.LIST_PARTITION_REASSIGNMENTS, ApiKey.DESCRIBE_QUORUM})
"""The forwardable APIs that change nothing."""


async def answer_of(controller: ControllerHost, request: Message, version: int) -> Any:
    """The response of the active controller in this process, once what it changes is committed. Raises `KafkaError`."""
    if request.KEY in VOTER_CHANGES:
        return await future_of(controller.quorum.ask(request, version, ""))
    return await controller.call(request, version)
