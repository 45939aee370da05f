"""Decides on ListPartitionReassignments: the partitions that are being moved to other brokers. Writes nothing. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from ottla.metadata.controller.decision import Decision
from ottla.metadata.controller.state import ControllerState
from ottla.metadata.image.topics import Topic
from ottla.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


def list_reassignments(
    state: ControllerState, request: ListPartitionReassignmentsRequest, now_ms: int
) -> Decision[ListPartitionReassignmentsResponse]:
    """The partitions of the request, or all, that are being moved; all others are left out."""
    by_name = state.image.topics.by_name
    response = ListPartitionReassignmentsResponse(error_message=None)
    wanted: Iterable[tuple[str, Iterable[int]]]
    if request.topics is None:
        wanted = [(topic.name, topic.partitions) for topic in by_name.values()]
    else:
        wanted = [(topic.name, topic.partition_indexes) for topic in request.topics]
    for name, numbers in wanted:
        topic = by_name.get(name)
        ongoing = [] if topic is None else _ongoing(topic, numbers)
        if ongoing:
            response.topics.append(OngoingTopicReassignment(name=name, partitions=ongoing))
    return Decision(response)


def _ongoing(topic: Topic, numbers: Iterable[int]) -> list[OngoingPartitionReassignment]:
    found = []
    for number in numbers:
        state = topic.partitions.get(number)
        if state is not None and (state.adding_replicas or state.removing_replicas):
            found.append(
                OngoingPartitionReassignment(
                    partition_index=number,
                    replicas=list(state.replicas),
                    adding_replicas=list(state.adding_replicas),
                    removing_replicas=list(state.removing_replicas),
                )
            )
    return found
