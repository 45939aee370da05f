"""A change is waited for until a broker shows it."""

import asyncio

import pytest
from tests.support.nodes.fake_node import FakeNetwork
from tests.unit.cli.conftest import WHERE, describe, make_node, metadata_of

from ottla.cli.common.running import open_cluster
from ottla.cli.common.settings import build_settings
from ottla.cli.topics.command import see
from ottla.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse


def test_topic_is_described_until_it_shows_the_change(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter([1, 1, 3])
    node = make_node()

    def answer(request: MetadataRequest, version: int) -> MetadataResponse:
        return metadata_of(describe("orders", next(counts)))(request, version)

    node.handlers[MetadataRequest] = answer
    monkeypatch.setattr("ottla.cli.common.running.make_network", lambda: FakeNetwork({WHERE: node}))

    async def run() -> None:
        cluster = open_cluster(build_settings("localhost:9092", {"retry.backoff.ms": "1"}))
        try:
            await see(cluster, "orders", lambda topic: topic is not None and len(topic.partitions) == 3)
        finally:
            cluster.close()

    asyncio.run(run())
    assert len(node.asked_for(DescribeTopicPartitionsRequest)) == 3
