"""Faults of Fetch: responses of incremental sessions have partitions that the request does not name."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.peers.broker_links import connected

from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid
from ottla.link import Link
from ottla.testing import Broker
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

WithLink = Callable[[Callable[[Link], Any]], Any]
NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
BY_NAME, BY_ID = 12, 17


@pytest.fixture
def topic(broker: Broker) -> Any:
    name = f"topic-{len(broker.topics())}"
    broker.create_topic(name, partitions=3)
    return name


def topic_id(broker: Broker, name: str) -> Uuid:
    async def ask() -> Uuid:
        async with connected(broker) as link:
            response = await link.request(MetadataRequest(topics=[MetadataRequestTopic(name=name)]))
            found: Uuid = response.topics[0].topic_id
            return found

    return asyncio.run(ask())


class Session:
    """A fetch session of one topic, as a consumer has it."""

    def __init__(self, link: Link, name: str, id: Uuid, version: int) -> None:
        self._link, self._name, self._id, self._version = link, name, id, version
        self._session_id, self._epoch = 0, 0

    async def fetch(self, *partitions: int, offset: int = 0, wait_ms: int = 0, forget: tuple[int, ...] = ()) -> FetchResponse:
        request = FetchRequest(max_wait_ms=wait_ms, min_bytes=1, session_id=self._session_id, session_epoch=self._epoch)
        if partitions:
            asked = [FetchPartition(partition=each, fetch_offset=offset, partition_max_bytes=1 << 20) for each in partitions]
            request.topics = [FetchTopic(topic=self._name, topic_id=self._id, partitions=asked)]
        if forget:
            request.forgotten_topics_data = [ForgottenTopic(topic=self._name, topic_id=self._id, partitions=list(forget))]
        response: FetchResponse = await self._link.request(request, version=self._version)
        if not response.error_code:
            self._session_id, self._epoch = response.session_id, self._epoch + 1
        return response


def error_codes(response: FetchResponse) -> dict[int, int]:
    """Partition → error, of the partitions in a response."""
    assert response.error_code == 0
    return {data.partition_index: data.error_code for topic in response.responses for data in topic.partitions}


def sizes(response: FetchResponse) -> dict[int, int]:
    return {data.partition_index: len(data.records or b"") for topic in response.responses for data in topic.partitions}


@pytest.mark.parametrize("version", [BY_NAME, BY_ID])
def test_one_partition_of_a_session_fails_and_comes_back(broker: Broker, topic: str, with_link: WithLink, version: int) -> None:
    for index in range(3):
        broker.produce(topic, "value", partition=index)
    id = topic_id(broker, topic)

    async def use(link: Link) -> None:
        session = Session(link, topic, id, version)
        assert error_codes(await session.fetch(0, 1, 2)) == {0: 0, 1: 0, 2: 0}
        with broker.faults.fail("Fetch", NOT_LEADER, topic=topic, partition=1) as fault:
            response = await session.fetch()  # names nothing
            assert error_codes(response) == {0: 0, 1: NOT_LEADER, 2: 0}
            assert sizes(response)[1] == 0
            assert fault.hits == 1
        response = await session.fetch()
        assert error_codes(response) == {0: 0, 1: 0, 2: 0}
        assert sizes(response)[1] > 0  # nothing was lost on the way

    with_link(use)


def test_after_an_error_an_unchanged_partition_is_sent_again(broker: Broker, topic: str, with_link: WithLink) -> None:
    id = topic_id(broker, topic)

    async def use(link: Link) -> None:
        session = Session(link, topic, id, BY_ID)
        assert error_codes(await session.fetch(0, 1)) == {0: 0, 1: 0}
        assert error_codes(await session.fetch()) == {}
        fault = broker.faults.fail("Fetch", NOT_LEADER, topic=topic, partition=1)
        assert error_codes(await session.fetch()) == {1: NOT_LEADER}
        fault.remove()
        assert error_codes(await session.fetch()) == {1: 0}
        assert error_codes(await session.fetch()) == {}

    with_link(use)


def test_an_error_ends_a_parked_fetch(broker: Broker, topic: str, with_link: WithLink) -> None:
    id = topic_id(broker, topic)
    broker.faults.fail("Fetch", NOT_LEADER, topic=topic)

    async def use(link: Link) -> None:
        began_s = time.monotonic()
        assert error_codes(await Session(link, topic, id, BY_ID).fetch(0, wait_ms=60_000)) == {0: NOT_LEADER}
        assert time.monotonic() - began_s < 30

    with_link(use)


def test_a_forgotten_partition_is_not_met(broker: Broker, topic: str, with_link: WithLink) -> None:
    id = topic_id(broker, topic)

    async def use(link: Link) -> None:
        session = Session(link, topic, id, BY_ID)
        await session.fetch(0, 1)
        fault = broker.faults.fail("Fetch", NOT_LEADER, topic=topic, partition=1)
        assert error_codes(await session.fetch(forget=(1,))) == {}
        assert error_codes(await session.fetch()) == {}
        assert fault.hits == 0

    with_link(use)


def test_without_a_topic_all_partitions_or_the_whole_fetch_fail(broker: Broker, topic: str, with_link: WithLink) -> None:
    id = topic_id(broker, topic)

    async def use(link: Link) -> None:
        session = Session(link, topic, id, BY_ID)
        broker.faults.fail("Fetch", "OFFSET_OUT_OF_RANGE", times=1)
        assert set(error_codes(await session.fetch(0, 1)).values()) == {ErrorCode.OFFSET_OUT_OF_RANGE}
        broker.faults.fail("Fetch", "FETCH_SESSION_ID_NOT_FOUND", times=1)
        response = await session.fetch()
        assert response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND

    with_link(use)


def test_a_delay_for_a_partition_that_only_the_session_names(broker: Broker, topic: str, with_link: WithLink) -> None:
    id = topic_id(broker, topic)

    async def use(link: Link) -> None:
        session = Session(link, topic, id, BY_ID)
        await session.fetch(0, 1)
        met = broker.faults.delay("Fetch", 0.0, topic=topic, partition=1)
        not_met = broker.faults.delay("Fetch", 0.0, topic=topic, partition=2)
        await session.fetch()
        assert (met.hits, not_met.hits) == (1, 0)

    with_link(use)
