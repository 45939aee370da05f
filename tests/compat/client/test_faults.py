"""Brokers that are paused, slow, unreachable or gone elsewhere, and answers that are lost, while Ottla's clients use them.

Everything goes through a proxy, which the broker advertises as its address. What was sent must be read, once and in order, and
no call may take longer than its timeout.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.support.peers.group_members import FAST_GROUPS
from tests.support.peers.load import QUICK, Load
from tests.support.peers.ottla_clients import Faces
from tests.support.peers.topics import await_true, make_topic
from tests.support.servers.kafka_server import HANG_S, KafkaServer, free_ports
from tests.support.servers.ottla_server import StartServer
from tests.support.servers.proxy import Proxy

from ottla.errors import KafkaError, TimeoutError

SHORT: dict[str, Any] = QUICK | {"request_timeout_ms": 1000, "socket_connection_setup_timeout_ms": 1000}
SHORT_FETCH = SHORT | {"fetch_max_wait_ms": 100}
HASTY = SHORT | {"request_timeout_ms": 500}
FAR_S = 40.0
"""Far more than the timeouts that tests set, and far less than the defaults (60 and 120 s)."""


@pytest.fixture(scope="module")
def proxy() -> Iterator[Proxy]:
    with Proxy() as running:
        yield running


@pytest.fixture(scope="module")
def proxied(start_server: StartServer, proxy: Proxy) -> Iterator[KafkaServer]:
    """A broker behind the proxy."""
    with start_server(FAST_GROUPS | proxy.settings()) as server:
        yield server


@pytest.fixture(params=["sync", pytest.param("aio", marks=pytest.mark.slow)])
def face(request: pytest.FixtureRequest) -> Iterator[Faces]:
    """As everywhere, but the asyncio face is slow: both are thin over one core, and each test kills or hangs a broker."""
    with Faces(request.param) as faces:
        yield faces


def test_answers_are_lost_with_five_requests_in_flight(proxied: KafkaServer, proxy: Proxy, face: Faces, topic: str) -> None:
    make_topic(proxied.bootstrap, topic, 3)
    with Load(face, proxy.bootstrap, topic, 3, producer={"batch_size": 100, "linger_ms": 0}) as load:
        for _ in range(5):
            load.await_more(50)
            proxy.lose_answers()
            load.await_sent(30)
            proxy.cut()
        load.await_more(50)


def test_half_open_connections_are_given_up(proxied: KafkaServer, proxy: Proxy, face: Faces, topic: str) -> None:
    make_topic(proxied.bootstrap, topic, 3)
    with Load(face, proxy.bootstrap, topic, 3, producer=SHORT, consumer=SHORT_FETCH) as load:
        for _ in range(2):
            load.await_more(50)
            proxy.freeze()
        load.await_more(100)


def test_paused_broker(proxied: KafkaServer, proxy: Proxy, face: Faces, topic: str) -> None:
    make_topic(proxied.bootstrap, topic, 3)
    with Load(face, proxy.bootstrap, topic, 3, producer=SHORT, consumer=SHORT_FETCH) as load:
        load.await_more(50)
        os.kill(proxied.pid, signal.SIGSTOP)
        try:
            before = load.producer.metrics()["producer-metrics"]["record-retry-total"]
            load.await_sent(20)
            await_true(
                lambda: load.producer.metrics()["producer-metrics"]["record-retry-total"] > before,
                "a request to time out and to be sent again",
            )
        finally:
            os.kill(proxied.pid, signal.SIGCONT)
        load.await_more(100)


def test_slow_broker(proxied: KafkaServer, proxy: Proxy, face: Faces, topic: str) -> None:
    make_topic(proxied.bootstrap, topic, 3)
    proxy.delay_s = 0.1
    try:
        with Load(face, proxy.bootstrap, topic, 3) as load:
            load.await_more(100)
            proxy.cut()
            load.await_more(100)
    finally:
        proxy.delay_s = 0.0


def test_no_call_takes_longer_than_its_timeout(proxied: KafkaServer, proxy: Proxy, face: Faces, topic: str) -> None:
    make_topic(proxied.bootstrap, topic)
    producer = face.producer(proxy.bootstrap, delivery_timeout_ms=600, max_block_ms=500, **HASTY)
    transactional = face.producer(proxy.bootstrap, transactional_id=topic, max_block_ms=500, **HASTY)
    consumer = face.consumer(proxy.bootstrap, group_id=topic, auto_offset_reset="earliest", **HASTY)
    admin = face.admin(proxy.bootstrap, default_api_timeout_ms=600, **HASTY)
    await_true(lambda: _works(lambda: producer.send(topic, b"first").result(HANG_S)), "the first record to be stored")
    await_true(lambda: _works(transactional.init_transactions), "the producer's id")
    consumer.assign((topic, 0))
    await_true(lambda: consumer.poll(1) != [], "a record to be read")
    place = (topic, 0)
    calls: dict[str, Callable[[], Any]] = {
        "send": lambda: producer.send(topic, b"lost").result(HANG_S),
        "send to a new topic": lambda: producer.send(f"{topic}-new", b"lost").result(HANG_S),
        "flush": lambda: _flush_one(producer, topic),
        "partitions_for": lambda: producer.partitions_for(f"{topic}-other"),
        "end_offsets": lambda: consumer.end_offsets(place, timeout=0.5),
        "commit": lambda: consumer.commit({place: 1}, timeout=0.5),
        "committed": lambda: consumer.committed(place, timeout=0.5),
        "describe_cluster": lambda: admin.describe_cluster(),
        "commit_transaction": lambda: _commit_one(transactional, topic),
    }
    proxy.is_frozen = True
    proxy.freeze()
    try:
        for name, call in calls.items():
            began_s = time.monotonic()
            with pytest.raises(KafkaError) as failed:
                call()
            assert isinstance(failed.value, TimeoutError) or failed.value.is_retriable, (name, failed.value)
            assert time.monotonic() - began_s < FAR_S, name
        began_s = time.monotonic()
        assert consumer.poll(0.5) == []
        assert time.monotonic() - began_s < FAR_S
    finally:
        proxy.is_frozen = False
        proxy.cut()
    await_true(lambda: _works(lambda: producer.send(topic, b"last").result(HANG_S)), "the last record to be stored")
    await_true(lambda: _works(transactional.commit_transaction), "the transaction to be committed")


def _works(call: Callable[[], Any]) -> bool:
    """On a busy machine an answer may take longer than the short timeouts."""
    try:
        call()
    except KafkaError:
        return False
    return True


def _flush_one(producer: Any, topic: str) -> None:
    producer.send(topic, b"lost")
    producer.flush(0.5)


def _commit_one(producer: Any, topic: str) -> None:
    producer.begin_transaction()
    producer.send(topic, b"in a transaction")
    producer.commit_transaction()


def test_cluster_that_moved_is_found_by_its_bootstrap_address(
    start_server: StartServer, face: Faces, topic: str, tmp_path: Path
) -> None:
    """The only broker comes back at another port; the proxy, which it does not advertise, leads to it."""
    *ports, controller = free_ports(3)
    settings = [
        FAST_GROUPS
        | {
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
        }
        for port in ports
    ]
    with ExitStack() as stack:
        entrance = stack.enter_context(Proxy())
        first = stack.enter_context(start_server(settings[0], data_dir=tmp_path / "data"))
        entrance.target = first.port
        make_topic(first.bootstrap, topic, 3)
        with Load(face, entrance.bootstrap, topic, 3) as load:
            load.await_more(50)
            first.kill()
            second = stack.enter_context(start_server(settings[1], data_dir=tmp_path / "data"))
            assert second.port != first.port
            entrance.target = second.port
            entrance.cut()
            load.await_more(100)
