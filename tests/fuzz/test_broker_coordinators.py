"""Hostile requests to the coordinators: small ones that ask for very much, and odd ones, about groups and transactions.

Their cost is bounded, an honest client is served at the same time, and the node logs no unexpected error (`HostileNode`).
"""

import threading
import time
from collections.abc import Iterator
from uuid import uuid4

import pytest
from tests.support.hostile.hostile_client import HostileClient
from tests.support.hostile.hostile_node import HostileNode, linux_only
from tests.support.peers.topics import make_topic

from ottla.broker.handlers.groups.group_calls import REPEATED_MEMBERS_MAX
from ottla.wire.messages import offset_fetch as fetches
from ottla.wire.messages import write_txn_markers as markers
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.describe_groups import DescribeGroupsRequest
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ottla.wire.messages.list_groups import ListGroupsRequest
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

pytestmark = linux_only

GROUP, TRANSACTION = 0, 1
LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE = 14, 15
WAIT_S_MAX = 3.0
"""How much processor time the node may spend on other requests while an honest client waits for one response. The requests
below once took 8 to 20 s."""


@pytest.fixture(scope="module")
def node() -> Iterator[HostileNode]:
    with HostileNode() as running:
        make_topic(running.bootstrap, "one", 500)
        with running.connect() as client:
            long = [CreatableTopic(name=f"t{number:04}" + "a" * 200, num_partitions=1) for number in range(100)]
            client.request(CreateTopicsRequest(topics=long, timeout_ms=20_000), 7)
            for kind in (GROUP, TRANSACTION):
                request = FindCoordinatorRequest(key_type=kind, coordinator_keys=["g"])
                while client.request(request, 4).coordinators[0].error_code:
                    time.sleep(0.05)
        yield running


@pytest.fixture
def client(node: HostileNode) -> Iterator[HostileClient]:
    """A hostile client. An honest client asks at the same time and must not wait long."""
    waits_s: list[float] = []
    is_over = threading.Event()

    def honest() -> None:
        with node.connect(60) as bystander:
            while not waits_s or not is_over.is_set():
                begun_s = node.cpu_s
                bystander.request(MetadataRequest(topics=[]), 9)
                waits_s.append(node.cpu_s - begun_s)

    thread = threading.Thread(target=honest)
    thread.start()
    try:
        with node.connect(60) as hostile:
            yield hostile
    finally:
        is_over.set()
        thread.join()
    assert max(waits_s) < WAIT_S_MAX, f"the honest client waited while the node worked for {max(waits_s):.1f} s"


def commit(client: HostileClient, group_id: str, count: int, version: int = 8, retention_ms: int = -1) -> set[int]:
    partitions = [OffsetCommitRequestPartition(partition_index=index, committed_offset=7) for index in range(count)]
    request = OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=-1,
        retention_time_ms=retention_ms,
        topics=[OffsetCommitRequestTopic(name="one", partitions=partitions)],
    )
    while True:
        codes = {each.error_code for each in client.request(request, version).topics[0].partitions}
        if codes != {LOAD_IN_PROGRESS}:
            return codes


@pytest.mark.parametrize("group_id", ["", "x" * 32_000, "\0", "é\n2026 ERROR", "𝕫", " "])
def test_odd_group_ids_are_handled(client: HostileClient, group_id: str) -> None:
    assert commit(client, group_id, 1) in ({0}, {24})
    wanted = fetches.OffsetFetchRequestGroup(group_id=group_id, topics=None)
    (found,) = client.request(fetches.OffsetFetchRequest(groups=[wanted]), 8).groups
    assert found.group_id == group_id


@pytest.mark.parametrize("retention_ms", [2**63 - 1, -(2**63), -2, 0])
def test_extreme_retention_times_are_accepted(client: HostileClient, retention_ms: int) -> None:
    assert commit(client, "kept", 1, version=4, retention_ms=retention_ms) == {0}


def test_fetching_offsets_of_one_group_1000_times_is_bounded(client: HostileClient) -> None:
    assert commit(client, "large", 500) == {0}
    wanted = [fetches.OffsetFetchRequestGroup(group_id="large", topics=None)] * 1000
    found = client.request(fetches.OffsetFetchRequest(groups=wanted), 8).groups
    codes = [group.error_code for group in found]
    assert codes == [0] * 100 + [LOAD_IN_PROGRESS] * 900


def test_describing_one_group_20_000_times_is_bounded(client: HostileClient) -> None:
    commit(client, "named", 1)
    groups = client.request(DescribeGroupsRequest(groups=["named"] * 20_000), 5).groups
    assert {(group.group_id, group.group_state) for group in groups} == {("named", "Empty")}
    assert len(groups) == 1 + REPEATED_MEMBERS_MAX


def test_one_group_per_request_is_served(client: HostileClient) -> None:
    for number in range(300):
        commit(client, f"group {number}", 1)
    assert len(client.request(ListGroupsRequest(), 4).groups) >= 300


def test_10_000_markers_in_one_request_are_written(client: HostileClient) -> None:
    topics = [markers.WritableTxnMarkerTopic(name="one", partition_indexes=[0])]
    request = markers.WriteTxnMarkersRequest(
        markers=[
            markers.WritableTxnMarker(producer_id=number, producer_epoch=0, transaction_result=True, topics=topics)
            for number in range(10_000)
        ]
    )
    answered = client.request(request, 1).markers
    assert [marker.producer_id for marker in answered] == list(range(10_000))
    assert {marker.topics[0].partitions[0].error_code for marker in answered} == {0}


def test_marker_that_repeats_a_partition_is_answered_once_for_it(client: HostileClient) -> None:
    topics = [markers.WritableTxnMarkerTopic(name="one", partition_indexes=[*[1] * 20_000, 2, 9999])]
    marker = markers.WritableTxnMarker(producer_id=3, producer_epoch=0, transaction_result=False, topics=topics)
    (answered,) = client.request(markers.WriteTxnMarkersRequest(markers=[marker]), 1).markers
    assert {each.partition_index: each.error_code for each in answered.topics[0].partitions} == {1: 0, 2: 0, 9999: 3}


@pytest.mark.parametrize(
    "regex",
    [
        "(a|t|.)*(a?){900}a{0,900}",
        "(.*a){80}(.*a){80}",
        "((a?){100}){100}",
        r"[\pL\pN]{0,1000}",
        "(" * 2000,
        "\0",
        "x" * 32_000,
    ],
)
def test_expensive_regular_expressions_are_bounded(client: HostileClient, regex: str) -> None:
    request = ConsumerGroupHeartbeatRequest(
        group_id="of expressions", member_id=str(uuid4()), rebalance_timeout_ms=1000, topic_partitions=[]
    )
    request.subscribed_topic_names, request.subscribed_topic_regex = None, regex
    assert client.request(request, 1).error_code in (0, 128)


@pytest.mark.slow
def test_memory_for_group_members_is_bounded() -> None:
    """Each has a group of its own, a subscription of nearly a megabyte, and a session of half an hour."""
    settings = ["--set=socket.request.max.bytes=2000000", "--set=queued.max.request.bytes=8000000"]
    with HostileNode(settings=settings) as node, node.connect(60) as client:
        find = FindCoordinatorRequest(key_type=GROUP, coordinator_keys=["g"])
        while client.request(find, 4).coordinators[0].error_code:
            time.sleep(0.05)
        codes = []
        for number in range(20):
            request = JoinGroupRequest(group_id=f"hog-{number}", session_timeout_ms=1_800_000, rebalance_timeout_ms=1_800_000)
            request.protocol_type = "consumer"
            request.protocols = [JoinGroupRequestProtocol(name="range", metadata=bytes(900_000))]
            codes.append(client.request(request, 3).error_code)
        assert codes == [0] * 4 + [COORDINATOR_NOT_AVAILABLE] * 16
