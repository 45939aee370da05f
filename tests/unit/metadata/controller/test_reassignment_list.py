"""ListPartitionReassignments: the partitions being moved, of all topics or of those that are named."""

import pytest
from tests.support.nodes.controller_cluster import SeededRandomness
from tests.support.nodes.images import broker, image_of, partition

from ottla.metadata.controller.reassignment_list import list_reassignments
from ottla.metadata.controller.state import ControllerSettings, ControllerState
from ottla.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)

MOVING = partition(1)._replace(replicas=(2, 1), adding_replicas=(2,), removing_replicas=(1,))
IMAGE = image_of([broker(1), broker(2)], {"a": [partition(1), MOVING], "b": [partition(1)], "c": [MOVING, MOVING]})


@pytest.mark.parametrize(
    ("wanted", "listed"),
    [
        (None, [("a", [1]), ("c", [0, 1])]),
        ([], []),
        ([("a", [0, 1, 9]), ("b", [0]), ("absent", [0])], [("a", [1])]),
        ([("c", [1])], [("c", [1])]),
    ],
)
def test_what_is_listed(wanted: list[tuple[str, list[int]]] | None, listed: list[tuple[str, list[int]]]) -> None:
    topics = wanted and [ListPartitionReassignmentsTopics(name=name, partition_indexes=indexes) for name, indexes in wanted]
    request = ListPartitionReassignmentsRequest(topics=topics)
    state = ControllerState(ControllerSettings("cluster", 1), SeededRandomness(), IMAGE)
    response, records = list_reassignments(state, request, 0)
    assert not records
    assert [(topic.name, [each.partition_index for each in topic.partitions]) for topic in response.topics] == listed
    for topic in response.topics:
        for each in topic.partitions:
            assert (each.replicas, each.adding_replicas, each.removing_replicas) == ([2, 1], [2], [1])
