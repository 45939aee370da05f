"""Calls that wait for long log what they wait for: a unit, and the calls of both faces that can block."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.support.peers.ottla_clients import Faces
from tests.support.servers.kafka_server import HANG_S
from tests.unit.client.consumer.conftest import FACES

from ottla.client import patience
from ottla.client.patience import AGAIN_S, FIRST_S, Patience
from ottla.testing import Broker

QUICK: dict[str, Any] = {"request_timeout_ms": 1_000, "retry_backoff_max_ms": 100}
"""A request that the broker never answers is soon sent again."""


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic_s(self) -> float:
        return self.now_s

    def now_ms(self) -> int:
        raise AssertionError("durations need no wall clock")

    now_ns = now_ms


def test_a_reason_is_logged_after_some_seconds_and_then_every_minute(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    watched = Patience(clock)
    assert watched.look(lambda: "why.") == FIRST_S
    clock.now_s += FIRST_S - 1
    assert watched.look(lambda: "why.") == 1
    assert not caplog.records
    clock.now_s += 1
    assert watched.look(lambda: "why.") == AGAIN_S
    assert watched.look(lambda: "why.") == AGAIN_S
    assert caplog.messages == ["why. Waiting for 5 s already"]
    clock.now_s += AGAIN_S
    watched.look(lambda: "why.")
    assert caplog.messages[1:] == ["why. Waiting for 65 s already"]


def test_a_wait_without_a_reason_or_that_has_ended_counts_from_zero(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    watched = Patience(clock)
    watched.look(lambda: None)
    clock.now_s += FIRST_S
    assert watched.look(lambda: None) == FIRST_S
    clock.now_s += FIRST_S - 1
    watched.ended()
    assert watched.look(lambda: "why") == FIRST_S
    assert not caplog.records


# Whole clients


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"group.initial.rebalance.delay.ms": 0}) as broker:
        broker.create_topic("t")
        yield broker


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "FIRST_S", 0.05)


@pytest.fixture(params=["sync", "aio"])
def make_producer(request: pytest.FixtureRequest, broker: Broker) -> Iterator[Callable[..., Any]]:
    with Faces(request.param) as faces:
        made: list[Any] = []

        def make(**settings: Any) -> Any:
            made.append(faces.producer(broker.bootstrap_servers, **settings))
            return made[-1]

        yield make
        for each in made:
            each.close(1)


def await_logged(caplog: pytest.LogCaptureFixture, text: str) -> None:
    deadline_s = time.monotonic() + HANG_S
    while text not in caplog.text:
        assert time.monotonic() < deadline_s, f"{text!r} was not logged: {caplog.text}"
        time.sleep(0.01)


class Blocked:
    """A call in another thread that blocks; what it raises in the end is of no interest."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._thread = threading.Thread(target=self._run, args=(call,))

    def _run(self, call: Callable[[], Any]) -> None:
        try:
            call()
        except Exception as error:
            self.error = error

    def __enter__(self) -> Blocked:
        self._thread.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self._thread.join(HANG_S)
        assert not self._thread.is_alive()


@pytest.mark.usefixtures("impatient")
def test_send_says_that_it_waits_for_metadata(make_producer: Any, broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    producer = make_producer(**QUICK)
    with broker.faults.hang("Metadata"), Blocked(lambda: producer.send("t", b"v")):
        await_logged(caplog, "send() waits for the metadata of topic t: no broker has answered yet")
        broker.faults.clear()


@pytest.mark.usefixtures("impatient")
def test_send_says_that_it_waits_for_memory(make_producer: Any, broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    producer = make_producer(buffer_memory=20_000, batch_size=10_000, **QUICK)
    producer.partitions_for("t")

    def fill() -> None:
        for _ in range(4):
            producer.send("t", b"v" * 9_000)

    with broker.faults.hang("Produce"), Blocked(fill):
        await_logged(caplog, "send() waits for room in buffer.memory")
        await_logged(caplog, "The oldest records are for t-0: node 1 has not answered")
        broker.faults.clear()


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("call", ["flush", "close"])
def test_flush_and_close_say_which_records_they_wait_for(
    make_producer: Any, broker: Broker, call: str, caplog: pytest.LogCaptureFixture
) -> None:
    producer = make_producer(**QUICK)
    producer.partitions_for("t")
    with broker.faults.hang("Produce"):
        producer.send("t", b"v")
        with Blocked(getattr(producer, call)):
            await_logged(caplog, f"{call}() waits for 1 record to be stored. The oldest are for t-0: node 1 has not answered")
            broker.faults.clear()


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("face", FACES.values(), ids=FACES)
def test_short_polls_say_that_they_wait_for_the_coordinator(
    face: Any, broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    with face(broker.bootstrap_servers, group_id="g", **QUICK) as consumer:
        consumer.subscribe(["t"])
        with broker.faults.hang("FindCoordinator"):
            for _ in range(1_000):
                consumer.poll(0.02)
                if "poll() waits for the coordinator of group g: no broker has answered yet" in caplog.text:
                    break
            else:
                pytest.fail("nothing was logged")


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("face", FACES.values(), ids=FACES)
def test_polls_without_new_records_say_nothing(face: Any, broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    with face(broker.bootstrap_servers, auto_offset_reset="latest") as consumer:
        consumer.assign(("t", 0))
        consumer.position(("t", 0))
        caplog.clear()
        consumer.poll(0.3)
        assert "waits" not in caplog.text


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("face", FACES.values(), ids=FACES)
def test_a_commit_says_why_it_waits(face: Any, broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    consumer = face(broker.bootstrap_servers, group_id="c", auto_offset_reset="earliest", **QUICK)
    with consumer, broker.faults.hang("FindCoordinator"):
        with pytest.raises(TimeoutError):
            consumer.commit({("t", 0): 0}, timeout=0.3)
        assert "the offsets of group c were not committed yet" in caplog.text
