"""ListPartitionReassignments: the controller's list."""

from tests.support.nodes.config_node import DIRECTORY_ID, ConfigNode

from ottla.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from ottla.wire.messages.metadata_records import PartitionChangeRecord


def test_controller_is_asked() -> None:
    node = ConfigNode()
    assert node.ask(ListPartitionReassignmentsRequest(topics=None)).topics == []
    topic_id = node.metadata.image.topics.by_name["t"].id
    node.replay(
        PartitionChangeRecord(
            partition_id=0, topic_id=topic_id, replicas=[1, 2], adding_replicas=[2], directories=[DIRECTORY_ID] * 2
        )
    )
    [listed] = node.ask(ListPartitionReassignmentsRequest(topics=None)).topics
    assert (listed.name, listed.partitions[0].adding_replicas) == ("t", [2])
