"""A cluster in memory where all names that clients or brokers choose are the same, and numbers are large.

    node = named_node("orders\x1b[2J")
    network = FakeNetwork({WHERE: node})

`READING` are commands that show things, `CHANGING` commands that change something and name it.
"""

import time
from collections.abc import Sequence
from typing import Any

from tests.support.nodes.fake_node import FakeNode, Handler
from tests.unit.cli.conftest import WHERE
from tests.unit.cli.groups.conftest import find_coordinator

from ottla.cli.common.offsets import EARLIEST
from ottla.errors.codes import ErrorCode
from ottla.records.builder import build_batch
from ottla.records.record import Record
from ottla.wire.base import Message
from ottla.wire.messages import consumer_group_describe as group
from ottla.wire.messages import create_topics as created
from ottla.wire.messages import (
    delete_groups,
    delete_records,
    delete_topics,
    elect_leaders,
    fetch,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
)
from ottla.wire.messages import describe_cluster as described
from ottla.wire.messages import describe_configs as configs
from ottla.wire.messages import describe_log_dirs as dirs
from ottla.wire.messages import describe_producers as producers
from ottla.wire.messages import describe_quorum as quorum
from ottla.wire.messages import describe_topic_partitions as topics
from ottla.wire.messages import describe_transactions as transactions
from ottla.wire.messages import metadata as known
from ottla.wire.messages import offset_fetch as committed

OFFSET, END, TIME_MS = 15_975_512_345, 15_975_519_999, 1_700_000_000_123
LONG_AGO_MS = int((time.time() - 7200) * 1000)
PRODUCER_ID = 4_611_686_018_427_387_904
SIZE_BYTES = 987_654_321_987

READING: tuple[tuple[str, ...], ...] = (
    ("topics", "list"),
    ("topics", "describe"),
    ("cluster", "describe"),
    ("brokers", "describe"),
    ("quorum", "describe"),
    ("reassign", "list"),
    ("groups", "list"),
    ("groups", "list", "--state", "--type", "--protocol"),
    ("groups", "describe", "--all-groups"),
    ("groups", "describe", "--all-groups", "--members", "--verbose"),
    ("groups", "describe", "--all-groups", "--state"),
    ("groups", "reset-offsets", "idle-NAME", "--topic", "NAME", "--to-latest"),
    ("transactions", "list"),
    ("transactions", "describe", "NAME"),
    ("transactions", "describe-producers", "--topic", "NAME", "--partition", "0"),
    ("transactions", "find-hanging"),
    ("configs", "describe", "topic", "--all", "--docs"),
    ("log-dirs",),
    ("get-offsets", "--time", "max-timestamp"),
    ("consume", "NAME", "--offset", str(OFFSET), "--partition", "0", "--max-messages", "1"),
)
"""Commands, with NAME in place of the name."""

CHANGING: tuple[tuple[str, ...], ...] = (
    ("topics", "create", "NAME"),
    ("topics", "delete", "NAME", "--yes"),
    ("groups", "delete", "NAME", "--yes"),
    ("groups", "describe", "absent-NAME"),
    ("delete-records", "NAME:0:5", "--yes"),
    ("elect-leaders", "--topic", "NAME"),
    ("transactions", "force-terminate", "NAME", "--yes"),
    ("consume", "NAME", "--partition", "7"),
    ("no such verb NAME",),
    ("topics", "NAME"),
)


def with_name(arguments: Sequence[str], name: str) -> list[str]:
    return [each.replace("NAME", name) for each in arguments]


def named_node(name: str) -> FakeNode:
    """One broker with a topic, a group with a member, a transactional id and settings, all called `name`."""
    host = f"/{name}"

    def metadata(request: known.MetadataRequest, version: int) -> known.MetadataResponse:
        partition = known.MetadataResponsePartition(leader_id=1, leader_epoch=0, replica_nodes=[1], isr_nodes=[1])
        wanted = [name] if request.topics is None else [each.name for each in request.topics]
        return known.MetadataResponse(
            brokers=[known.MetadataResponseBroker(node_id=1, host=WHERE[0], port=WHERE[1])],
            controller_id=1,
            topics=[
                known.MetadataResponseTopic(name=each, partitions=[partition])
                if each == name
                else known.MetadataResponseTopic(name=each, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                for each in wanted
            ],
        )

    def describe_topics(request: Any, version: int) -> Message:
        partition = topics.DescribeTopicPartitionsResponsePartition(
            leader_id=1, replica_nodes=list(range(100_000, 100_020)), isr_nodes=[1]
        )
        topic = topics.DescribeTopicPartitionsResponseTopic(name=name, partitions=[partition])
        return topics.DescribeTopicPartitionsResponse(topics=[topic])

    def describe_configs(request: configs.DescribeConfigsRequest, version: int) -> Message:
        shown = configs.DescribeConfigsResourceResult(
            name=f"set.{name}",
            value=f"{SIZE_BYTES}",
            config_source=1,
            documentation=f"About {name}. " * 4,
            synonyms=[configs.DescribeConfigsSynonym(name=name, value=name, source=1)],
        )
        return configs.DescribeConfigsResponse(
            results=[
                configs.DescribeConfigsResult(
                    resource_type=each.resource_type, resource_name=each.resource_name, configs=[shown]
                )
                for each in request.resources
            ]
        )

    def offsets(request: list_offsets.ListOffsetsRequest, version: int) -> Message:
        is_first = request.topics[0].partitions[0].timestamp == EARLIEST
        found = list_offsets.ListOffsetsPartitionResponse(offset=0 if is_first else END, timestamp=TIME_MS, leader_epoch=3)
        topic = list_offsets.ListOffsetsTopicResponse(name=name, partitions=[found])
        return list_offsets.ListOffsetsResponse(topics=[topic])

    def listed_groups(request: Any, version: int) -> Message:
        listed = list_groups.ListedGroup(group_id=name, protocol_type="consumer", group_state="Stable", group_type="consumer")
        return list_groups.ListGroupsResponse(groups=[listed])

    def describe_groups(request: Any, version: int) -> Message:
        held = group.Assignment(topic_partitions=[group.TopicPartitions(topic_name=name, partitions=[0])])
        member = group.Member(
            member_id=name,
            instance_id=name,
            client_id=name,
            client_host=host,
            member_epoch=1_000_000,
            assignment=held,
            target_assignment=held,
        )
        described = [
            group.DescribedGroup(
                group_id=each, group_state="Stable", group_epoch=1_000_000, assignor_name=name, members=[member]
            )
            if each == name
            else group.DescribedGroup(group_id=each, group_state="Empty")
            for each in request.group_ids
        ]
        return group.ConsumerGroupDescribeResponse(groups=described)

    def fetch_offsets(request: Any, version: int) -> Message:
        partition = committed.OffsetFetchResponsePartitions(committed_offset=OFFSET, committed_leader_epoch=3)
        topic = committed.OffsetFetchResponseTopics(name=name, partitions=[partition])
        groups = [committed.OffsetFetchResponseGroup(group_id=each.group_id, topics=[topic]) for each in request.groups]
        return committed.OffsetFetchResponse(groups=groups)

    def listed_transactions(request: Any, version: int) -> Message:
        state = list_transactions.TransactionState(transactional_id=name, producer_id=PRODUCER_ID, transaction_state="Ongoing")
        states = [] if request.producer_id_filters else [state]
        return list_transactions.ListTransactionsResponse(transaction_states=states)

    def describe_transactions(request: Any, version: int) -> Message:
        state = transactions.TransactionState(
            transactional_id=name,
            transaction_state="Ongoing",
            transaction_start_time_ms=LONG_AGO_MS,
            producer_id=PRODUCER_ID,
            topics=[transactions.TopicData(topic=name, partitions=list(range(10)))],
        )
        return transactions.DescribeTransactionsResponse(transaction_states=[state])

    def describe_producers(request: Any, version: int) -> Message:
        state = producers.ProducerState(
            producer_id=PRODUCER_ID, last_timestamp=LONG_AGO_MS, coordinator_epoch=3, current_txn_start_offset=OFFSET
        )
        topic = producers.TopicResponse(name=name, partitions=[producers.PartitionResponse(active_producers=[state])])
        return producers.DescribeProducersResponse(topics=[topic])

    def log_dirs(request: Any, version: int) -> Message:
        topic = dirs.DescribeLogDirsTopic(name=name, partitions=[dirs.DescribeLogDirsPartition(partition_size=SIZE_BYTES)])
        broken = dirs.DescribeLogDirsResult(log_dir=f"/broken/{name}", error_code=ErrorCode.KAFKA_STORAGE_ERROR)
        return dirs.DescribeLogDirsResponse(results=[dirs.DescribeLogDirsResult(log_dir=host, topics=[topic]), broken])

    def records(request: fetch.FetchRequest, version: int) -> Message:
        content = name.encode()
        batch = build_batch([Record(OFFSET, TIME_MS, content, content, ((name, content),))])
        partition = fetch.PartitionData(high_watermark=END, records=bytes(batch))
        (asked,) = request.topics
        topic = fetch.FetchableTopicResponse(topic=name, topic_id=asked.topic_id, partitions=[partition])
        return fetch.FetchResponse(responses=[topic])

    def create(request: created.CreateTopicsRequest, version: int) -> Message:
        refused = created.CreatableTopicResult(name=name, error_code=ErrorCode.INVALID_TOPIC_EXCEPTION, error_message=name)
        return created.CreateTopicsResponse(topics=[refused])

    def delete(request: Any, version: int) -> Message:
        refused = delete_topics.DeletableTopicResult(name=name, error_code=ErrorCode.POLICY_VIOLATION, error_message=name)
        return delete_topics.DeleteTopicsResponse(responses=[refused])

    def delete_group(request: Any, version: int) -> Message:
        refused = delete_groups.DeletableGroupResult(group_id=name, error_code=ErrorCode.NON_EMPTY_GROUP)
        return delete_groups.DeleteGroupsResponse(results=[refused])

    def delete_some(request: Any, version: int) -> Message:
        partition = delete_records.DeleteRecordsPartitionResult(error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
        topic = delete_records.DeleteRecordsTopicResult(name=name, partitions=[partition])
        return delete_records.DeleteRecordsResponse(topics=[topic])

    def elect(request: Any, version: int) -> Message:
        refused = elect_leaders.PartitionResult(error_code=ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, error_message=name)
        result = elect_leaders.ReplicaElectionResult(topic=name, partition_result=[refused])
        return elect_leaders.ElectLeadersResponse(replica_election_results=[result])

    def cluster(request: Any, version: int) -> Message:
        broker = described.DescribeClusterBroker(broker_id=1, host=WHERE[0], port=WHERE[1], rack=name)
        return described.DescribeClusterResponse(cluster_id=name, controller_id=1, brokers=[broker])

    def describe_quorum(request: Any, version: int) -> Message:
        replica = quorum.ReplicaState(replica_id=1, log_end_offset=END, last_fetch_timestamp=1, last_caught_up_timestamp=1)
        partition = quorum.DescribeQuorumResponsePartitionData(leader_id=1, high_watermark=END, current_voters=[replica])
        topic = quorum.DescribeQuorumResponseTopicData(topic_name="__cluster_metadata", partitions=[partition])
        where = quorum.Node(node_id=1, listeners=[quorum.Listener(name=name, host=name, port=9093)])
        return quorum.DescribeQuorumResponse(topics=[topic], nodes=[where])

    def reassignments(request: Any, version: int) -> Message:
        moving = list_partition_reassignments.OngoingPartitionReassignment(replicas=[1, 2], adding_replicas=[2])
        topic = list_partition_reassignments.OngoingTopicReassignment(name=name, partitions=[moving])
        return list_partition_reassignments.ListPartitionReassignmentsResponse(topics=[topic])

    from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
    from ottla.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

    handlers: dict[type[Message], Handler] = {
        known.MetadataRequest: metadata,
        topics.DescribeTopicPartitionsRequest: describe_topics,
        configs.DescribeConfigsRequest: describe_configs,
        list_offsets.ListOffsetsRequest: offsets,
        FindCoordinatorRequest: find_coordinator,
        list_groups.ListGroupsRequest: listed_groups,
        group.ConsumerGroupDescribeRequest: describe_groups,
        committed.OffsetFetchRequest: fetch_offsets,
        list_transactions.ListTransactionsRequest: listed_transactions,
        transactions.DescribeTransactionsRequest: describe_transactions,
        producers.DescribeProducersRequest: describe_producers,
        dirs.DescribeLogDirsRequest: log_dirs,
        described.DescribeClusterRequest: cluster,
        quorum.DescribeQuorumRequest: describe_quorum,
        fetch.FetchRequest: records,
        created.CreateTopicsRequest: create,
        delete_topics.DeleteTopicsRequest: delete,
        delete_groups.DeleteGroupsRequest: delete_group,
        delete_records.DeleteRecordsRequest: delete_some,
        elect_leaders.ElectLeadersRequest: elect,
        list_partition_reassignments.ListPartitionReassignmentsRequest: reassignments,
        InitProducerIdRequest: lambda request, version: InitProducerIdResponse(
            error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        ),
    }
    return FakeNode(handlers)
