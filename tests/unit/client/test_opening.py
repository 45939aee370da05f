"""The cluster of a client's settings: which nodes it asks, under which client id."""

import asyncio

import pytest
from tests.support.nodes.fake_node import FakeNetwork, FakeNode

from ottla.client.opening import open_cluster
from ottla.client.real_world import real_client_world
from ottla.config.client import admin_settings
from ottla.errors import UnreachableError
from ottla.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse

WHERE = ("localhost", 9092)


def run(node: FakeNode | None, settings: dict[str, object], client_id: str = "ottla") -> None:
    """Ask for metadata once."""

    async def body() -> None:
        world = real_client_world()._replace(network=FakeNetwork({} if node is None else {WHERE: node}))
        cluster = open_cluster(world, admin_settings(keywords=settings), client_id, waits_for_brokers=False)
        try:
            await cluster.metadata([])
        finally:
            cluster.close()

    asyncio.run(body())


def test_client_id_of_the_settings_comes_before_the_default() -> None:
    node = FakeNode({MetadataRequest: lambda *_: MetadataResponse()})
    run(node, {"bootstrap_servers": "localhost:9092"}, "tool")
    run(node, {"bootstrap_servers": "localhost:9092", "client_id": "mine"}, "tool")
    assert node.client_ids == {"tool", "mine"}


def test_controllers_are_asked_to_describe_the_cluster() -> None:
    node = FakeNode({DescribeClusterRequest: lambda *_: DescribeClusterResponse(cluster_id="c")})
    run(node, {"bootstrap_controllers": "localhost:9092"})
    assert [each.endpoint_type for each in node.asked_for(DescribeClusterRequest)] == [2]


def test_brokers_that_are_not_there_are_an_error_at_once() -> None:
    with pytest.raises(UnreachableError, match="no broker can be reached"):
        run(None, {"bootstrap_servers": "localhost:9092"})
