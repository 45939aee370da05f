"""Incremental fetch sessions, observed on the wire between a real client and the broker.

The first request of a session names all partitions and has epoch 0; the reply brings the session's id. From then on a request
names only partitions that changed for the client, and a reply only partitions with new data.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kafka import KafkaConsumer, TopicPartition
from tests.compat.broker.wire_tap import Exchange, WireTap
from tests.support.peers.clients import CLIENTS, Outgoing, ProducerOptions
from tests.support.peers.raw_client import RawClient
from tests.support.peers.topics import make_topic
from tests.support.servers.kafka_server import HANG_S
from tests.support.servers.ottla_server import StartServer

from ottla.ids import Uuid
from ottla.wire.apis import ApiKey
from ottla.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic

PARTITIONS = 12
READER = "the-reader"
FULL, FINAL = 0, -1
INVALID_SESSION_EPOCH, UNKNOWN_SESSION = 71, 70


@pytest.fixture(scope="module")
def tap(start_server: StartServer) -> Iterator[WireTap]:
    tap = WireTap()
    settings = {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{tap.port}"}
    with start_server(settings) as server, tap.watching(server.port):
        yield tap


def send(tap: WireTap, topic: str, partition: int, *values: bytes) -> None:
    sent = [Outgoing(value, partition=partition) for value in values]
    CLIENTS["confluent"]().produce(tap.bootstrap, topic, sent, ProducerOptions(linger_ms=0))


def partitions_asked(exchange: Exchange) -> list[int]:
    return sorted(part.partition for topic in exchange.request.topics for part in topic.partitions)


def partitions_answered(exchange: Exchange) -> list[int]:
    return sorted(part.partition_index for topic in exchange.response.responses for part in topic.partitions)


def poll_until(consumer: Any, count: int, timeout_s: float = HANG_S) -> list[tuple[int, bytes]]:
    rows: list[tuple[int, bytes]] = []
    deadline = time.monotonic() + timeout_s
    while len(rows) < count:
        assert time.monotonic() < deadline, f"{len(rows)} of {count} records came"
        rows += [(row.partition, row.value) for part in consumer.poll(200).values() for row in part]
    return rows


def test_session_on_the_wire(tap: WireTap, topic: str) -> None:
    make_topic(tap.bootstrap, topic, PARTITIONS)
    client_id = f"{READER}-{topic}"
    consumer = KafkaConsumer(bootstrap_servers=tap.bootstrap, group_id=None, client_id=client_id, fetch_max_wait_ms=300)
    try:
        consumer.assign([TopicPartition(topic, number) for number in range(PARTITIONS)])
        consumer.seek_to_beginning()
        consumer.poll(1000)
        for number in (3, 7, 3):
            send(tap, topic, number, b"value for %d" % number)
            assert poll_until(consumer, 1) == [(number, b"value for %d" % number)]
        consumer.poll(1000)
    finally:
        consumer.close()
    fetches = [each for each in tap.exchanges(ApiKey.FETCH, client_id) if each.response is not None]
    first, later = fetches[0], fetches[1:]
    assert (first.request.session_id, first.request.session_epoch) == (0, FULL)
    assert partitions_asked(first) == list(range(PARTITIONS))
    session_id = first.response.session_id
    assert session_id > 0
    later = [each for each in later if each.request.session_epoch > 0]
    assert len(later) >= 5
    assert [each.request.session_epoch for each in later] == list(range(1, len(later) + 1))
    for each in later:
        assert each.request.session_id == each.response.session_id == session_id
        assert each.response.error_code == 0
        assert set(partitions_asked(each)) <= {3, 7}, "only partitions whose position has moved are named"
    parts = [part for each in later for answered in each.response.responses for part in answered.partitions]
    # The client may leave out a partition whose records wait to be polled. When it adds it again, the partition is new.
    forgotten = {index for each in later for topic in each.request.forgotten_topics_data for index in topic.partitions}
    bare = {part.partition_index for part in parts if not part.records}
    assert bare <= forgotten, "a partition with nothing new is not in the reply"
    assert [part.partition_index for part in parts if part.records] == [3, 7, 3]
    assert [] in [partitions_asked(each) for each in later]
    assert {partition for each in later for partition in partitions_asked(each)} == {3, 7}
    assert all(each.response_bytes < 60 for each in later if not partitions_answered(each)), "empty replies are small"


def fetch(topic_id: Uuid, partitions: dict[int, int], session_id: int = 0, epoch: int = 0, **extra: Any) -> FetchRequest:
    parts = [
        FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=1 << 20)
        for number, offset in partitions.items()
    ]
    return FetchRequest(
        max_wait_ms=extra.pop("max_wait_ms", 0),
        min_bytes=1,
        max_bytes=1 << 20,
        session_id=session_id,
        session_epoch=epoch,
        topics=[FetchTopic(topic_id=topic_id, partitions=parts)] if parts else [],
        **extra,
    )


@pytest.fixture
def ask(tap: WireTap) -> Iterator[Callable[[FetchRequest], Any]]:
    with RawClient.to(tap.bootstrap) as client:
        yield lambda request: client.request(request, 16)


def answered(response: Any) -> dict[int, int]:
    """Partition to the number of record bytes in the reply."""
    return {part.partition_index: len(part.records or b"") for topic in response.responses for part in topic.partitions}


def test_partitions_are_added_and_forgotten(tap: WireTap, topic: str, ask: Callable[[FetchRequest], Any]) -> None:
    topic_id = make_topic(tap.bootstrap, topic, 3)
    opened = ask(fetch(topic_id, {0: 0, 1: 0}))
    assert set(answered(opened)) == {0, 1}, "the first reply has them all"
    session = opened.session_id
    send(tap, topic, 2, b"two")
    assert answered(ask(fetch(topic_id, {}, session, 1))) == {}
    added = answered(ask(fetch(topic_id, {2: 0}, session, 2)))
    assert set(added) == {2}
    assert added[2] > 0
    again = answered(ask(fetch(topic_id, {}, session, 3)))
    assert set(again) == {2}, "the fetch offset is the same, so the same records come again"
    forgotten = [ForgottenTopic(topic_id=topic_id, partitions=[2])]
    assert answered(ask(fetch(topic_id, {}, session, 4, forgotten_topics_data=forgotten))) == {}
    send(tap, topic, 0, b"zero")
    assert set(answered(ask(fetch(topic_id, {}, session, 5)))) == {0}


def test_wrong_epoch_and_unknown_session(tap: WireTap, topic: str, ask: Callable[[FetchRequest], Any]) -> None:
    topic_id = make_topic(tap.bootstrap, topic)
    session = ask(fetch(topic_id, {0: 0})).session_id
    wrong = ask(fetch(topic_id, {}, session, 5))
    assert wrong.error_code == INVALID_SESSION_EPOCH
    assert not wrong.responses
    assert ask(fetch(topic_id, {}, session, 1)).error_code == 0, "the session is as it was"
    assert ask(fetch(topic_id, {}, session + 1, 1)).error_code == UNKNOWN_SESSION


def test_sessions_end(tap: WireTap, topic: str, ask: Callable[[FetchRequest], Any]) -> None:
    topic_id = make_topic(tap.bootstrap, topic)
    session = ask(fetch(topic_id, {0: 0})).session_id
    closed = ask(fetch(topic_id, {0: 0}, session, FINAL))
    assert (closed.error_code, closed.session_id) == (0, 0)
    assert ask(fetch(topic_id, {}, session, 1)).error_code == UNKNOWN_SESSION


def test_a_full_fetch_with_an_old_id_opens_a_new_session(tap: WireTap, topic: str, ask: Callable[[FetchRequest], Any]) -> None:
    topic_id = make_topic(tap.bootstrap, topic)
    session = ask(fetch(topic_id, {0: 0})).session_id
    renewed = ask(fetch(topic_id, {0: 0}, session, FULL))
    assert renewed.error_code == 0
    assert renewed.session_id not in (0, session)
    assert ask(fetch(topic_id, {}, session, 1)).error_code == UNKNOWN_SESSION


def test_partition_with_an_error_is_in_the_reply(tap: WireTap, topic: str, ask: Callable[[FetchRequest], Any]) -> None:
    topic_id = make_topic(tap.bootstrap, topic)
    opened = ask(fetch(topic_id, {0: 5}))
    codes = [part.error_code for answer in opened.responses for part in answer.partitions]
    assert codes == [1], "5 is beyond the end"


def test_the_cache_is_bounded(start_server: StartServer, topic: str) -> None:
    slots = 16
    with start_server({"max.incremental.fetch.session.cache.slots": slots}) as server:
        topic_id = make_topic(server.bootstrap, topic)
        with RawClient.to(server.bootstrap) as client:
            opened = [client.request(fetch(topic_id, {0: 0}), 16).session_id for _ in range(5 * slots)]
            without = client.request(fetch(topic_id, {0: 0}, 0, FINAL), 16)
    kept = [session for session in opened if session]
    assert 0 < len(kept) <= slots
    assert len(set(kept)) == len(kept)
    assert opened[-1] == 0, "when the cache is full, a client is served without a session"
    assert (without.error_code, without.session_id) == (0, 0)
