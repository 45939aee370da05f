"""Stopping a broker that clients still use: parked requests are answered at once, and few folders have to be removed."""

import asyncio
from pathlib import Path

import pytest
from tests.support.peers.broker_links import connected

from ottla.link import Link
from ottla.testing import Broker
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

MODES = pytest.mark.parametrize("process", [False, True], ids=["thread", "process"])


async def long_fetch(link: Link, topic: str) -> FetchRequest:
    """A fetch from the log end offset, which waits for a minute."""
    found = (await link.request(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]))).topics[0]
    partition = FetchPartition(partition=0, fetch_offset=1, partition_max_bytes=1000)
    entry = FetchTopic(topic=topic, topic_id=found.topic_id, partitions=[partition])
    return FetchRequest(max_wait_ms=60_000, min_bytes=1, max_bytes=1000, session_epoch=-1, topics=[entry])


@MODES
def test_fetches_that_wait_are_answered_when_it_stops(tmp_path: Path, process: bool) -> None:
    async def scenario() -> None:
        async with Broker(data=tmp_path, process=process) as broker:
            await broker.aio.produce("orders", "value")
            async with connected(broker) as link:
                request = await long_fetch(link, "orders")
                answers = [link.send(request), link.send(request)]  # two on one connection
                await broker.aio.topics()  # sent after the fetches: they have been received when this is answered
                assert not any(answer.done() for answer in answers)
                await broker.aio.stop()
                for response in await asyncio.gather(*answers):
                    (partition,) = response.responses[0].partitions
                    assert (partition.error_code, bytes(partition.records), partition.high_watermark) == (0, b"", 1)

    asyncio.run(scenario())
    assert (tmp_path / ".kafka_cleanshutdown").exists()


def test_a_fetch_is_dropped_when_its_connection_closes() -> None:
    async def scenario() -> None:
        async with Broker() as broker:
            await broker.aio.produce("orders", "value")
            partition = broker._engine._host._runner.node.services.partitions.find("orders", 0)  # type: ignore
            async with connected(broker) as link:
                answer = link.send(await long_fetch(link, "orders"))
                async with asyncio.timeout(60):
                    while not partition.watches:
                        await asyncio.sleep(0.001)
            async with asyncio.timeout(60):
                while partition.watches:
                    await asyncio.sleep(0.001)
            assert isinstance(answer.exception(), Exception)

    asyncio.run(scenario())


def test_internal_topics_have_few_partitions_unless_asked_for_more() -> None:
    async def find_coordinator(broker: Broker) -> None:
        async with connected(broker) as link:
            await link.request(FindCoordinatorRequest(key_type=0, coordinator_keys=["a-group"]))

    for config, count in (({}, 4), ({"offsets.topic.num.partitions": 7}, 7)):
        with Broker(config) as broker:
            asyncio.run(find_coordinator(broker))
            assert len(list(broker.data.glob("__consumer_offsets-*"))) == count
