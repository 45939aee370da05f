"""Groups that are not of consumers are described, too: without assignments, whose format only their members know."""

import json

from tests.support.nodes.fake_node import FakeNode
from tests.unit.cli.conftest import RunOttla

from ottla.cli.groups.describe import by_topic
from ottla.ids import TopicPartition
from ottla.wire.messages.describe_groups import DescribeGroupsRequest


def test_group_of_kafka_connect_has_members_without_partitions(ottla: RunOttla, coordinator: FakeNode) -> None:
    said = ottla("groups", "describe", "worker", "old", "--members", "--json")
    assert said.rc == 0, said.err
    old, worker = json.loads(said.out)
    assert (old["group"], old["members"][0]["assignment"]) == ("old", {"orders": [0, 1]})
    assert (worker["group"], worker["type"], worker["state"], worker["assignor"]) == (
        "worker",
        "Classic",
        "Stable",
        "compatible",
    )
    assert [(each["memberId"], each["host"], each["assignment"]) for each in worker["members"]] == [("w-1", "/1.2.3.4", {})]
    assert [each.groups for each in coordinator.asked_for(DescribeGroupsRequest)] == [["old", "worker"], ["worker"]]


def test_partitions_are_grouped_by_topic() -> None:
    assert by_topic([TopicPartition("a", 0), TopicPartition("b", 1), TopicPartition("a", 2)]) == {"a": [0, 2], "b": [1]}
