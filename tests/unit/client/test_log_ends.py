"""Where a broker's own replicas end."""

import asyncio
from typing import Any

from ottla.client.log_ends import log_ends
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition
from ottla.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)


class OneBroker:
    """A cluster whose brokers have partition 0 of `orders`, and not partition 1."""

    class settings:
        request_timeout_ms = 1000

    def __init__(self) -> None:
        self.asked: list[tuple[int, ListOffsetsRequest]] = []

    async def once(self, broker_id: int, request: ListOffsetsRequest) -> ListOffsetsResponse:
        self.asked.append((broker_id, request))
        found = ListOffsetsPartitionResponse(partition_index=0, offset=57)
        other = ListOffsetsPartitionResponse(partition_index=1, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="orders", partitions=[found, other])])


def test_the_broker_itself_is_asked_and_refused_partitions_are_left_out() -> None:
    cluster: Any = OneBroker()
    wanted = [TopicPartition("orders", 0), TopicPartition("orders", 1)]
    assert asyncio.run(log_ends(cluster, 3, wanted)) == {wanted[0]: 57}
    ((broker, request),) = cluster.asked
    assert (broker, request.replica_id) == (3, -2), "followers answer only the debugging consumer"
    assert [each.partition_index for each in request.topics[0].partitions] == [0, 1]
