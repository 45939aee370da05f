"""A coordinator in memory: one classic group, one of the new protocol, and an empty one."""

import pytest
from tests.support.nodes.fake_node import FakeNode

from ottla.errors.codes import ErrorCode
from ottla.records.builder import build_batch
from ottla.records.kernels import Record
from ottla.wire.codec import encode_bytes
from ottla.wire.messages import consumer_group_describe as new
from ottla.wire.messages import describe_groups as classic
from ottla.wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolAssignmentTopicPartition
from ottla.wire.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from ottla.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from ottla.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

FIRST, END = 2, 10


def find_coordinator(request: FindCoordinatorRequest, version: int) -> FindCoordinatorResponse:
    if version < 4:
        return FindCoordinatorResponse(node_id=1, host="localhost", port=9092)
    found = [Coordinator(key=key, node_id=1, host="localhost", port=9092) for key in request.coordinator_keys]
    return FindCoordinatorResponse(coordinators=found)


def list_groups(request: ListGroupsRequest, version: int) -> ListGroupsResponse:
    groups = [
        ListedGroup(group_id="worker", protocol_type="connect", group_state="Stable", group_type="classic"),
        ListedGroup(group_id="old", protocol_type="consumer", group_state="Stable", group_type="classic"),
        ListedGroup(group_id="new", protocol_type="consumer", group_state="Stable", group_type="consumer"),
        ListedGroup(group_id="idle", protocol_type="", group_state="Empty", group_type="classic"),
        ListedGroup(group_id="shared", protocol_type="share", group_state="Stable", group_type="share"),
    ]
    return ListGroupsResponse(groups=groups)


def describe_classic(request: classic.DescribeGroupsRequest, version: int) -> classic.DescribeGroupsResponse:
    topic = ConsumerProtocolAssignmentTopicPartition(topic="orders", partitions=[1, 0])
    assignment = b"\0\1" + encode_bytes(ConsumerProtocolAssignment(assigned_partitions=[topic]), 1)
    member = classic.DescribedGroupMember(member_id="m-1", client_id="me", client_host="/1.2.3.4", member_assignment=assignment)
    known = {
        "old": classic.DescribedGroup(group_state="Stable", protocol_type="consumer", protocol_data="range", members=[member]),
        "idle": classic.DescribedGroup(group_state="Empty"),
        "worker": classic.DescribedGroup(
            group_state="Stable",
            protocol_type="connect",
            protocol_data="compatible",
            members=[classic.DescribedGroupMember(member_id="w-1", client_host="/1.2.3.4", member_assignment=b"own format")],
        ),
    }
    found = []
    for group_id in request.groups:
        group = known.get(group_id) or classic.DescribedGroup(
            group_state="Dead", error_code=ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else 0
        )
        group.group_id = group_id
        found.append(group)
    return classic.DescribeGroupsResponse(groups=found)


def describe_new(request: new.ConsumerGroupDescribeRequest, version: int) -> new.ConsumerGroupDescribeResponse:
    def assigned(*numbers: int) -> new.Assignment:
        return new.Assignment(topic_partitions=[new.TopicPartitions(topic_name="orders", partitions=list(numbers))])

    member = new.Member(
        member_id="m-2",
        instance_id="i",
        client_id="me",
        client_host="/1.2.3.4",
        member_epoch=4,
        assignment=assigned(0),
        target_assignment=assigned(0, 1),
        member_type=1,
    )
    found = []
    for group_id in request.group_ids:
        if group_id == "new":
            group = new.DescribedGroup(
                group_id="new",
                group_state="Reconciling",
                group_epoch=5,
                assignment_epoch=5,
                assignor_name="uniform",
                members=[member],
            )
        else:
            group = new.DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_ID_NOT_FOUND)
        found.append(group)
    return new.ConsumerGroupDescribeResponse(groups=found)


def fetch_offsets(request: OffsetFetchRequest, version: int) -> OffsetFetchResponse:
    """Each group has committed offset 4 for partition 0 and none for 1; old groups also one for a deleted topic."""
    if version < 8:
        old = [
            OffsetFetchResponsePartition(partition_index=index, committed_offset=offset) for index, offset in ((0, 4), (1, -1))
        ]
        return OffsetFetchResponse(topics=[OffsetFetchResponseTopic(name="orders", partitions=old)])
    parts = [
        OffsetFetchResponsePartitions(partition_index=index, committed_offset=offset, committed_leader_epoch=epoch)
        for index, offset, epoch in ((0, 4, 7), (1, -1, -1))
    ]
    gone = [OffsetFetchResponsePartitions(partition_index=0, committed_offset=1)]
    topics = [
        OffsetFetchResponseTopics(name="orders", partitions=parts),
        OffsetFetchResponseTopics(name="gone", partitions=gone),
    ]
    return OffsetFetchResponse(
        groups=[OffsetFetchResponseGroup(group_id=each.group_id, topics=topics) for each in request.groups]
    )


def list_offsets(request: ListOffsetsRequest, version: int) -> ListOffsetsResponse:
    places = {-2: FIRST, -1: END}
    topics = [
        ListOffsetsTopicResponse(
            name=topic.name,
            partitions=[
                ListOffsetsPartitionResponse(partition_index=each.partition_index, offset=places.get(each.timestamp, -1))
                for each in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return ListOffsetsResponse(topics=topics)


def commit_offsets(request: OffsetCommitRequest, version: int) -> OffsetCommitResponse:
    topics = [
        OffsetCommitResponseTopic(
            name=topic.name,
            partitions=[OffsetCommitResponsePartition(partition_index=each.partition_index) for each in topic.partitions],
        )
        for topic in request.topics
    ]
    return OffsetCommitResponse(topics=topics)


def fetch(request: FetchRequest, version: int) -> FetchResponse:
    """One record of 1970 at every offset."""
    topics = []
    for topic in request.topics:
        (asked,) = topic.partitions
        batch = bytes(build_batch([Record(asked.fetch_offset, 1_000, None, b"x")]))
        data = PartitionData(partition_index=asked.partition, high_watermark=END, records=batch)
        topics.append(FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=[data]))
    return FetchResponse(responses=topics)


@pytest.fixture
def coordinator(node: FakeNode) -> FakeNode:
    node.handlers |= {
        FindCoordinatorRequest: find_coordinator,
        ListGroupsRequest: list_groups,
        classic.DescribeGroupsRequest: describe_classic,
        new.ConsumerGroupDescribeRequest: describe_new,
        OffsetFetchRequest: fetch_offsets,
        ListOffsetsRequest: list_offsets,
        FetchRequest: fetch,
        OffsetCommitRequest: commit_offsets,
    }
    return node
