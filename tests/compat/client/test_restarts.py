"""A broker is killed and started again while Ottla's clients use it: nothing is lost, doubled or out of order."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.peers.clients import CLIENTS, ConsumerOptions
from tests.support.peers.group_members import FAST_GROUPS, MemberOptions, Members, await_members, await_values
from tests.support.peers.group_records import send_numbers
from tests.support.peers.ottla_clients import Faces
from tests.support.peers.topics import await_true, make_topic
from tests.support.peers.transactions import await_all_decided, read
from tests.support.servers.kafka_server import HANG_S
from tests.support.servers.ottla_server import StartServer
from tests.support.servers.restarting_server import RestartingServer

WAIT_S = 120
KILLS = 2
QUICK: dict[str, Any] = {"reconnect_backoff_max_ms": 200, "retry_backoff_max_ms": 200}


@pytest.fixture(scope="module")
def broker(start_server: StartServer) -> Iterator[RestartingServer]:
    with RestartingServer(start_server, FAST_GROUPS) as running:
        yield running


@pytest.fixture(params=["sync", pytest.param("aio", marks=pytest.mark.slow)])
def face(request: pytest.FixtureRequest) -> Iterator[Faces]:
    """As everywhere, but the asyncio face is slow: both are thin over one core, and each test kills or hangs a broker."""
    with Faces(request.param) as faces:
        yield faces


def test_producer_goes_on_after_kill_9(broker: RestartingServer, face: Faces, topic: str) -> None:
    make_topic(broker.bootstrap, topic)
    producer = face.producer(broker.bootstrap, linger_ms=1, batch_size=500, **QUICK)
    deliveries: list[Any] = []
    is_over = threading.Event()

    def keep_sending() -> None:
        while not is_over.wait(0.001):
            deliveries.append(producer.send(topic, b"%d" % len(deliveries), partition=0))

    sender = threading.Thread(target=keep_sending)
    sender.start()
    try:
        for _ in range(KILLS):
            goal = len(deliveries) + 100
            await_true(lambda goal=goal: len(deliveries) > goal, "records to be sent")
            broker.kill()
            broker.start()
    finally:
        is_over.set()
        sender.join()
    offsets = [delivery.result(WAIT_S).offset for delivery in deliveries]
    rows = CLIENTS["confluent"]().consume(broker.bootstrap, topic, [0], -2, len(deliveries), ConsumerOptions())
    assert [int(row.value or b"-1") for row in rows] == list(range(len(deliveries)))
    assert offsets == [row.offset for row in rows]


def test_transaction_goes_on_after_kill_9(broker: RestartingServer, face: Faces, topic: str) -> None:
    make_topic(broker.bootstrap, topic)
    producer = face.producer(broker.bootstrap, transactional_id=topic, **QUICK)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"before").result(WAIT_S)
    broker.kill()
    broker.start()
    producer.send(topic, b"after")
    producer.commit_transaction()
    with producer.transaction():
        producer.send(topic, b"next")
    await_all_decided(broker.bootstrap, topic, 1)
    assert read(broker.bootstrap, topic, 1, committed=True) == ["before", "after", "next"]


def test_assigned_consumer_goes_on_after_kill_9(broker: RestartingServer, face: Faces, topic: str) -> None:
    make_topic(broker.bootstrap, topic)
    consumer = face.consumer(broker.bootstrap, auto_offset_reset="earliest", **QUICK)
    consumer.assign((topic, 0))
    sent = send_numbers(broker.bootstrap, topic, 1, 0, 20)
    found = []
    while len(found) < 20:
        found += consumer.poll(WAIT_S)
    broker.kill()
    assert consumer.poll(0.2) == []
    broker.start()
    sent += send_numbers(broker.bootstrap, topic, 1, 20, 20)
    while len(found) < 40:
        found += consumer.poll(WAIT_S)
    assert [record.value.decode() for record in found] == sent
    assert consumer.position((topic, 0)) == 40


@pytest.mark.parametrize("library", ["ottla", pytest.param("ottla-aio", marks=pytest.mark.slow)])
@pytest.mark.parametrize("protocol", ["cooperative", "consumer"])
def test_group_goes_on_after_kill_9(broker: RestartingServer, topic: str, library: str, protocol: str) -> None:
    make_topic(broker.bootstrap, topic, 4)
    options = MemberOptions(topic, topics=(topic,), protocol=protocol, more={"auto.commit.interval.ms": "50"})
    with Members(_no_java) as members:
        both = [members.open(library, broker.bootstrap, options) for _ in range(2)]
        await_values(both, send_numbers(broker.bootstrap, topic, 4, 0, 40))
        broker.kill()
        broker.start()
        await_values(both, send_numbers(broker.bootstrap, topic, 4, 40, 40))
        await_members(both, lambda: len({each for one in both for each in one.assignment}) == 4, "all partitions", HANG_S)


def _no_java() -> Any:
    raise AssertionError("no Java members here")
