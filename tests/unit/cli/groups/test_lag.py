"""The overview of lag: sums by group, the largest first, patterns."""

import json
from typing import Any

import pytest
from tests.support.nodes.fake_node import FakeNode
from tests.unit.cli.conftest import RunOttla
from tests.unit.cli.groups.conftest import END, fetch_offsets, list_groups

from ottla.cli.groups.describe import by_topic
from ottla.ids import TopicPartition
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse, OffsetFetchResponsePartitions


def fetch_different_offsets(request: OffsetFetchRequest, version: int) -> OffsetFetchResponse:
    """Group idle has read one record more than the others."""
    groups = []
    for asked in request.groups:
        (group,) = fetch_offsets(OffsetFetchRequest(groups=[asked]), version).groups
        if asked.group_id == "idle":
            group.topics[0].partitions[0] = OffsetFetchResponsePartitions(partition_index=0, committed_offset=5)
        groups.append(group)
    return OffsetFetchResponse(groups=groups)


def test_lag_is_summed_and_the_largest_comes_first(ottla: RunOttla, coordinator: FakeNode) -> None:
    coordinator.handlers[OffsetFetchRequest] = fetch_different_offsets
    found = json.loads(ottla("groups", "lag", "--json").out)
    lags = [each["lag"] for each in found]
    assert lags == sorted(lags, reverse=True)
    assert found[-1]["group"] == "idle"
    assert (lags[0], lags[-1]) == (END - 4, END - 5)
    assert found[0]["partitions"] == 2, "a partition of a deleted topic counts, but has no lag"


def test_patterns_choose_groups(ottla: RunOttla, coordinator: FakeNode) -> None:
    lines = ottla("groups", "lag", "id*").lines
    assert lines[0].split() == ["GROUP", "STATE", "TOPICS", "PARTITIONS", "LAG", "LAG-SECONDS"]
    assert [line.split()[0] for line in lines[1:]] == ["idle"]
    assert "no group matches 'absent-.*'" in ottla("groups", "lag", "absent-.*").err


def test_seconds_sorts_and_limits(ottla: RunOttla, coordinator: FakeNode) -> None:
    coordinator.handlers[OffsetFetchRequest] = fetch_different_offsets
    found = json.loads(ottla("groups", "lag", "--sort", "group", "--json").out)
    assert [each["group"] for each in found] == sorted(each["group"] for each in found)
    assert all(each["lagSeconds"] > 1e9 for each in found), "since 1970"
    found = json.loads(ottla("groups", "lag", "--min-lag", END - 4, "--json").out)
    assert "idle" not in [each["group"] for each in found]
    assert found
    assert json.loads(ottla("groups", "lag", "--min-seconds", "1e12", "--json").out) == []
    lines = ottla("groups", "lag", "idle", "--partitions").lines
    assert lines[0].split() == ["GROUP", "STATE", "TOPIC", "PARTITION", "LAG", "LAG-SECONDS"]
    assert [line.split()[:5] for line in lines[1:]] == [
        ["idle", "Empty", "gone", "0", "-"],
        ["idle", "Empty", "orders", "0", str(END - 5)],
    ]


def test_watch_adds_rates_and_status(ottla: RunOttla, coordinator: FakeNode) -> None:
    def list_four_times(request: ListGroupsRequest, version: int) -> ListGroupsResponse:
        if len(coordinator.asked_for(ListGroupsRequest)) > 4:
            raise KeyboardInterrupt
        return list_groups(request, version)

    coordinator.handlers[ListGroupsRequest] = list_four_times
    said = ottla("groups", "lag", "old", "idle", "--watch", "0.1", "--json")
    assert said.rc == 130
    shown = [{each["group"]: each for each in json.loads(line)} for line in said.lines]
    assert [each["old"]["status"] for each in shown] == ["OK", "OK", "OK", "ERR"], "three commits, seen twice"
    assert [each["idle"]["status"] for each in shown] == ["IDLE"] * 4
    assert [each["old"]["rateIn"] for each in shown] == [None, 0, 0, 0]


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


SOON = ("--timeout", "3000")
"""What answers has to do so within this time, also on a busy machine; what is down is tried until it is over."""
DOWN = "broker 2 at two:9092 does not answer: start it, or check its advertised.listeners"


@pytest.fixture
def half(coordinator: FakeNode) -> FakeNode:
    """Broker 1 of two; broker 2, which leads orders-1, is down."""
    whole = coordinator.handlers[MetadataRequest]

    def metadata(request: MetadataRequest, version: int) -> MetadataResponse:
        response: Any = whole(request, version)
        for topic in response.topics:
            for each in topic.partitions:
                each.leader_id = 1 + each.partition_index % 2
        response.brokers = [*response.brokers, MetadataResponseBroker(node_id=2, host="two", port=9092)]
        return response  # type: ignore[no-any-return]  # of the class that the caller asked for

    coordinator.handlers[MetadataRequest] = metadata
    return coordinator


def test_list_shows_what_the_others_coordinate(ottla: RunOttla, half: FakeNode) -> None:
    said = ottla("groups", "list", *SOON)
    assert (said.rc, said.lines) == (1, ["idle", "new", "old"])
    assert "the groups that broker 2 coordinates are left out: " in said.err
    assert DOWN in said.err


def test_describe_says_why_an_end_is_not_known(ottla: RunOttla, half: FakeNode) -> None:
    said = ottla("groups", "describe", "old", *SOON)
    assert said.rc == 1
    assert f"the end of orders-1 is not known: {DOWN}" in said.err
    assert "orders-0" not in said.err
