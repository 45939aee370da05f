"""Small requests whose cost depends on what a node holds: many partitions, groups, transactional ids and members.

The node has as much of each as fits into the test's time. Requests that list, read or change all of it are sent over and over
beside a bystander.
"""

from collections.abc import Iterator, Sequence

import pytest
from tests.support.hostile import attacks
from tests.support.hostile.attacking import attack
from tests.support.hostile.hostile_node import HostileNode, linux_only
from tests.support.logs.batches import make_batch
from tests.support.peers.topics import make_topic

from ottla.wire.base import Message
from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from ottla.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from ottla.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from ottla.wire.messages.elect_leaders import ElectLeadersRequest
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.list_config_resources import ListConfigResourcesRequest
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from ottla.wire.messages.list_transactions import ListTransactionsRequest
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

pytestmark = [linux_only, pytest.mark.slow]
PARTITIONS = 2000
GROUPS = 5000
TRANSACTIONAL_IDS = 5000
ATTACK_S = 1.5
CREATION_S = 6.0
CREATE_AND_DELETE = "CreateTopics and DeleteTopics"


def requests() -> dict[str, list[tuple[Message, int]]]:
    """By name, the requests of an attack."""
    indexes = range(PARTITIONS)
    fetched = [FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1) for index in indexes]
    fetch = FetchRequest(max_wait_ms=500, min_bytes=1 << 20, max_bytes=1 << 20, session_epoch=-1)
    fetch.topics = [FetchTopic(topic="wide", partitions=fetched)]
    committed = [OffsetCommitRequestPartition(partition_index=index, committed_offset=1) for index in indexes]
    shortened = [DeleteRecordsPartition(partition_index=index, offset=0) for index in indexes]
    return {
        "CreatePartitions": [
            (CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="wide", count=9000)], validate_only=True), 3)
        ],
        "DeleteRecords": [(DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="wide", partitions=shortened)]), 2)],
        "DescribeLogDirs": [(DescribeLogDirsRequest(topics=None), 4)],
        "DescribeTopicPartitions": [(DescribeTopicPartitionsRequest(response_partition_limit=2000), 0)],
        "ElectLeaders": [(ElectLeadersRequest(topic_partitions=None), 2)],
        "Fetch": [(fetch, 11)],
        "ListConfigResources": [(ListConfigResourcesRequest(), 1)],
        "ListGroups": [(ListGroupsRequest(), 5)],
        "ListPartitionReassignments": [(ListPartitionReassignmentsRequest(topics=None), 0)],
        "ListTransactions": [(ListTransactionsRequest(), 1)],
        "Metadata": [(MetadataRequest(topics=None), 12)],
        "OffsetCommit": [
            (
                OffsetCommitRequest(
                    group_id="committing", topics=[OffsetCommitRequestTopic(name="wide", partitions=committed)]
                ),
                8,
            )
        ],
        "OffsetFetch": [(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="committing", topics=None)]), 8)],
    }


def produce_to_all() -> bytes:
    """A valid Produce request with a small batch for each of 2,000 partitions."""
    return attacks.produce("wide", *[bytes(make_batch(b"v")) for _ in range(PARTITIONS)])


def create_and_delete() -> list[bytes]:
    """Create a topic with many partitions, and delete it."""
    topic = CreatableTopic(name="big", num_partitions=PARTITIONS, replication_factor=1)
    create = CreateTopicsRequest(topics=[topic], timeout_ms=60_000)
    delete = DeleteTopicsRequest(topics=[DeleteTopicState(name="big")], timeout_ms=60_000)
    return [attacks.frame(create, 7), attacks.frame(delete, 6)]


def attacks_by_name() -> dict[str, list[bytes]]:
    found = {name: [attacks.frame(*each) for each in some] for name, some in requests().items()}
    found["Produce"] = [produce_to_all()]
    found[CREATE_AND_DELETE] = create_and_delete()
    return found


def send_all(node: HostileNode, messages: Sequence[tuple[Message, int]]) -> None:
    """Send requests, many at a time, and read the replies."""
    with node.connect() as client:
        for start in range(0, len(messages), 200):
            some = messages[start : start + 200]
            client.send_bytes(b"".join(attacks.frame(message, version) for message, version in some))
            for _ in some:
                client.receive_frame()


@pytest.fixture(scope="module")
def node() -> Iterator[HostileNode]:
    with HostileNode(growth_bytes_max=250_000_000) as running:
        make_topic(running.bootstrap, "bystander")
        make_topic(running.bootstrap, "wide", PARTITIONS)
        with running.connect() as client:
            client.send_bytes(produce_to_all())
            answer = client.receive(0, 9)
            assert not any(part.error_code for part in answer.responses[0].partition_responses)
        yield running


@pytest.fixture(scope="module")
def full_node(node: HostileNode) -> HostileNode:
    with node.connect() as client:
        for key_type in (0, 1):  # creates the internal topics
            client.request(FindCoordinatorRequest(key="k", key_type=key_type), 3)
    place = [OffsetCommitRequestTopic(name="bystander", partitions=[OffsetCommitRequestPartition(committed_offset=1)])]
    send_all(node, [(OffsetCommitRequest(group_id=f"g{number}", topics=place), 8) for number in range(GROUPS)])
    ids = [
        (InitProducerIdRequest(transactional_id=f"t{number}", transaction_timeout_ms=60_000), 4)
        for number in range(TRANSACTIONAL_IDS)
    ]
    send_all(node, ids)
    send_all(node, requests()["OffsetCommit"])
    return node


@pytest.mark.parametrize("connections", [1, 20])
@pytest.mark.parametrize("name", sorted([*requests(), "Produce", CREATE_AND_DELETE]))
def test_request_about_all_that_a_node_holds(full_node: HostileNode, name: str, connections: int) -> None:
    attack(full_node, attacks_by_name()[name], connections, CREATION_S if name == CREATE_AND_DELETE else ATTACK_S)
