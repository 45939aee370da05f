"""The helpers that `Broker` and `Cluster` share give the same answers with and without an event loop."""

import asyncio
from collections.abc import Iterator

import pytest

from ottla.testing import Broker, Cluster


@pytest.fixture(scope="module", params=["broker", "cluster"])
def servers(request: pytest.FixtureRequest) -> Iterator[Broker | Cluster]:
    with Broker() if request.param == "broker" else Cluster(nodes=1) as servers:
        yield servers


def test_what_one_face_wrote_the_other_reads(servers: Broker | Cluster) -> None:
    async def with_a_loop() -> None:
        made = await servers.aio.produce("shared", "a", key="k", partition=1)
        assert await servers.aio.records("shared") == [made]
        assert await servers.aio.await_records("shared") == [made]
        assert await servers.aio.end_offsets("shared") == {0: 0, 1: 1}
        assert (await servers.aio.topics())["shared"] == 2

    servers.create_topic("shared", partitions=2)
    asyncio.run(with_a_loop())
    made = servers.produce("shared", "b", partition=1)
    assert [each.value for each in servers.records("shared")] == [b"a", b"b"]
    assert servers.await_records("shared", 2)[-1] == made
    assert servers.end_offsets("shared") == {0: 0, 1: 2}
    assert servers.topics()["shared"] == 2


def test_a_deleted_topic_is_gone_for_both(servers: Broker | Cluster) -> None:
    servers.create_topic("short-lived")
    asyncio.run(servers.aio.delete_topic("short-lived"))
    assert "short-lived" not in servers.topics()
    assert "short-lived" not in asyncio.run(servers.aio.topics())
