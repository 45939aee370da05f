"""FindCoordinator: creates the internal topic on demand, and finds the leader of the key's partition."""

import asyncio
from types import SimpleNamespace

import pytest
from tests.support.nodes.images import context_of, image_of
from tests.support.peers.raw_client import RawClient

from ottla.broker.handlers.cluster import find_coordinator
from ottla.broker.requests.context import Pending, future_of
from ottla.broker.solo_settings import solo_settings
from ottla.config.broker import BrokerConfig
from ottla.coordinator.placement import partition_for
from ottla.errors.codes import ErrorCode
from ottla.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from ottla.testing import Broker
from ottla.wire.api_table import ApiKey
from ottla.wire.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic


def find(broker: Broker, version: int, *keys: str, key_type: int = 0) -> object:
    with RawClient.to(broker.bootstrap_servers) as client:
        request = FindCoordinatorRequest(key_type=key_type)
        if version >= 4:
            request.coordinator_keys = list(keys)
        else:
            (request.key,) = keys
        return client.request(request, version)


def partitions_of(broker: Broker, topic: str) -> int:
    """How many partitions the topic has; 0 if there is none."""
    with RawClient.to(broker.bootstrap_servers) as client:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
        return len(client.request(request, 9).topics[0].partitions)


@pytest.mark.parametrize(("key_type", "topic"), [(0, OFFSETS_TOPIC), (1, TRANSACTIONS_TOPIC)])
def test_the_internal_topic_is_made_and_its_leader_named(key_type: int, topic: str) -> None:
    with Broker({"offsets.topic.num.partitions": 50, "transaction.state.log.num.partitions": 50}) as broker:
        assert partitions_of(broker, topic) == 0
        response = find(broker, 6, "a", "b", key_type=key_type)
        assert [(found.key, found.node_id, found.port, found.error_code) for found in response.coordinators] == [  # type: ignore[attr-defined]
            ("a", 1, broker.port, 0),
            ("b", 1, broker.port, 0),
        ]
        assert partitions_of(broker, topic) == 50
        old = find(broker, 1, "a", key_type=key_type)
        assert (old.node_id, old.host, old.port, old.error_message) == (1, "127.0.0.1", broker.port, "NONE")  # type: ignore[attr-defined]


def test_a_cluster_too_small_for_the_topic_says_which_setting_to_change(caplog: pytest.LogCaptureFixture) -> None:
    with Broker(config={"offsets.topic.replication.factor": 3}) as broker:
        (refused,) = find(broker, 4, "a").coordinators  # type: ignore[attr-defined]
        assert refused.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert "offsets.topic.replication.factor" in refused.error_message
        assert find(broker, 2, "a").error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE  # type: ignore[attr-defined]
        for _ in range(20):
            find(broker, 4, "a")
        assert sum(" ERROR " in line and "cannot be created" in line for line in broker.log_lines) == 1


def test_an_unknown_kind_of_coordinator_is_refused() -> None:
    with Broker() as broker:
        (refused,) = find(broker, 6, "a", key_type=7).coordinators  # type: ignore[attr-defined]
        assert refused.error_code == ErrorCode.INVALID_REQUEST


def test_internal_topic_has_its_partitions_and_can_be_read() -> None:
    with Broker(config={"offsets.topic.num.partitions": 3}) as broker:
        find(broker, 6, "a")
        assert partitions_of(broker, OFFSETS_TOPIC) == 3
        with RawClient.to(broker.bootstrap_servers) as client:
            asked = ListOffsetsTopic(
                name=OFFSETS_TOPIC, partitions=[ListOffsetsPartition(partition_index=partition_for("a", 3), timestamp=-1)]
            )
            (topic,) = client.request(ListOffsetsRequest(replica_id=-1, topics=[asked]), 8).topics
            assert topic.partitions[0].error_code == 0


def test_a_topic_that_another_node_has_just_created_is_not_available_yet() -> None:
    class Channel:
        async def call(self, request: object, timeout_ms: int | None = None) -> CreateTopicsResponse:
            return CreateTopicsResponse(topics=[CreatableTopicResult(name=OFFSETS_TOPIC)])

    async def run() -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        context = context_of(
            image_of([], {}),
            ApiKey.FIND_COORDINATOR,
            6,
            channel=Channel(),
            settings=SimpleNamespace(current=BrokerConfig.from_settings(solo_settings("localhost", 0, "/data"))),
            loader=SimpleNamespace(caught_up=lambda: done),
        )
        handled = find_coordinator.handle(context, FindCoordinatorRequest(key_type=0, coordinator_keys=["a"]))
        assert isinstance(handled, Pending)
        (refused,) = (await future_of(handled)).coordinators
        assert refused.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert "is being created" in refused.error_message

    asyncio.run(run())
