"""Places and times are one number, and a partition has an offset or an error."""

import asyncio

import pytest
from tests.support.nodes.fake_node import FakeNetwork
from tests.unit.cli.conftest import WHERE, describe, make_node

from ottla.cli.common.connection import open_cluster
from ottla.cli.common.offsets import EARLIEST, LATEST, PLACES, list_offsets
from ottla.cli.common.settings import build_settings
from ottla.client.admin.offsets import FoundOffset
from ottla.errors import UnknownTopicOrPartitionError
from ottla.ids import TopicPartition
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)


def test_numbers_are_places_or_times(monkeypatch: pytest.MonkeyPatch) -> None:
    node = make_node(describe("orders", 3))

    def answer(request: ListOffsetsRequest, version: int) -> ListOffsetsResponse:
        (topic,) = request.topics
        found = [
            ListOffsetsPartitionResponse(partition_index=each.partition_index, offset=each.timestamp + 10)
            for each in topic.partitions
        ]
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name=topic.name, partitions=found)])

    node.handlers[ListOffsetsRequest] = answer
    monkeypatch.setattr("ottla.cli.common.connection.make_network", lambda: FakeNetwork({WHERE: node}))
    wanted = {TopicPartition("orders", 2): 5, TopicPartition("orders", 0): EARLIEST, TopicPartition("orders", 1): LATEST}

    async def run() -> None:
        cluster = open_cluster(build_settings("localhost:9092", {}))
        try:
            found = await list_offsets(cluster, wanted | {TopicPartition("gone", 0): LATEST}, read_committed=True)
        finally:
            cluster.close()
        error = found.pop(TopicPartition("gone", 0))
        assert isinstance(error, UnknownTopicOrPartitionError)
        assert found == {TopicPartition("orders", index): FoundOffset(at, -1, None) for index, at in enumerate((8, 9, 15))}

    asyncio.run(run())
    (request,) = node.asked_for(ListOffsetsRequest)
    assert request.isolation_level == 1


def test_places_have_kafkas_names() -> None:
    assert PLACES["earliest-pending-upload"] == -6
    assert (PLACES["latest"], PLACES["max-timestamp"]) == (-1, -3)
