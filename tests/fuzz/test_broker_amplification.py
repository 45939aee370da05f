"""Small requests that ask for very much: their cost is bounded, and an honest client is served at the same time."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.hostile.hostile_node import HostileNode, linux_only
from tests.support.peers.raw_client import ConnectionClosed
from tests.support.peers.topics import make_topic

from ottla.broker.handlers.admin.describe_configs import ENTRIES_MAX
from ottla.wire.messages import incremental_alter_configs as changes
from ottla.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

pytestmark = linux_only

TOPIC, BROKER, GROUP = 2, 4, 32
INVALID_REQUEST, POLICY_VIOLATION, INVALID_PARTITIONS = 42, 44, 37
WAIT_S_MAX = 10.0
"""How much processor time the node may spend on other requests while an honest client waits for one response."""


@pytest.fixture(scope="module")
def node() -> Iterator[HostileNode]:
    with HostileNode() as running:
        make_topic(running.bootstrap, "one")
        yield running


def ask(node: HostileNode, request: Any, version: int) -> Any:
    """The response, or None if the connection was closed. An honest client asks at the same time and must not wait long."""
    waits_s: list[float] = []
    is_over = threading.Event()

    def honest() -> None:
        with node.connect(60) as client:
            while True:  # at least once, even if the other request is answered at once
                begun_s = node.cpu_s
                client.request(MetadataRequest(topics=[]), 9)
                waits_s.append(node.cpu_s - begun_s)
                if is_over.is_set():
                    return

    thread = threading.Thread(target=honest)
    thread.start()
    try:
        with node.connect(60) as client:
            return client.request(request, version)
    except (ConnectionClosed, ConnectionError):
        return None
    finally:
        is_over.set()
        thread.join()
        assert max(waits_s) < WAIT_S_MAX, f"the honest client waited while the node worked for {max(waits_s):.1f} s"
        assert node.memory_bytes_peak - node.memory_bytes_before < 250_000_000


def configs(*resources: tuple[int, str]) -> DescribeConfigsRequest:
    wanted = [
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None) for kind, name in resources
    ]
    return DescribeConfigsRequest(resources=wanted, include_synonyms=True, include_documentation=True)


@pytest.mark.parametrize("resource", [(TOPIC, "one"), (BROKER, "1")])
def test_resource_named_20_000_times_is_described_once(node: HostileNode, resource: tuple[int, str]) -> None:
    answer = ask(node, configs(*[resource] * 20_000), 4)
    assert [(result.resource_type, result.resource_name, result.error_code) for result in answer.results] == [(*resource, 0)]


def test_describing_20_000_groups_stops_at_a_limit(node: HostileNode) -> None:
    answer = ask(node, configs(*[(GROUP, f"group {number}") for number in range(20_000)]), 4)
    assert len(answer.results) == 20_000
    assert sum(len(result.configs) for result in answer.results) < ENTRIES_MAX + 1000
    assert {result.error_code for result in answer.results} == {0, INVALID_REQUEST}


def test_changing_20_000_resources_at_once_is_refused(node: HostileNode) -> None:
    change = changes.AlterableConfig(name="retention.ms", config_operation=0, value="1")
    resources = [
        changes.AlterConfigsResource(resource_type=TOPIC, resource_name=f"t{number}", configs=[change])
        for number in range(20_000)
    ]
    answer = ask(node, changes.IncrementalAlterConfigsRequest(resources=resources), 1)
    assert {result.error_code for result in answer.responses} == {POLICY_VIOLATION}


def test_creating_20_000_topics_at_once_is_refused(node: HostileNode) -> None:
    topics = [CreatableTopic(name=f"t{number}", num_partitions=1, replication_factor=1) for number in range(20_000)]
    answer = ask(node, CreateTopicsRequest(topics=topics, timeout_ms=5000), 7)
    assert {result.error_code for result in answer.topics} == {POLICY_VIOLATION}


@pytest.mark.parametrize("count", [10_001, 2**31 - 1])
def test_topic_with_too_many_partitions_is_refused(node: HostileNode, count: int) -> None:
    topic = CreatableTopic(name="vast", num_partitions=count, replication_factor=1)
    (answer,) = ask(node, CreateTopicsRequest(topics=[topic], timeout_ms=5000), 7).topics
    assert answer.error_code in (POLICY_VIOLATION, INVALID_PARTITIONS)


def test_metadata_of_20_000_unknown_topics_is_answered(node: HostileNode) -> None:
    topics = [MetadataRequestTopic(name=f"absent {number}") for number in range(20_000)]
    answer = ask(node, MetadataRequest(topics=topics, allow_auto_topic_creation=False), 12)
    assert len(answer.topics) == 20_000


def test_fetch_of_20_000_unknown_partitions_is_answered(node: HostileNode) -> None:
    partitions = [FetchPartition(partition=number, partition_max_bytes=1 << 20) for number in range(20_000)]
    request = FetchRequest(max_wait_ms=100, min_bytes=1, max_bytes=1 << 30, session_epoch=0)
    request.topics = [FetchTopic(topic="one", partitions=partitions)]
    assert ask(node, request, 11).error_code == 0


def test_request_with_too_many_elements_closes_the_connection(node: HostileNode) -> None:
    parts = [ListOffsetsPartition(partition_index=0, timestamp=5)] * 300_000
    assert ask(node, ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="one", partitions=parts)]), 1) is None
