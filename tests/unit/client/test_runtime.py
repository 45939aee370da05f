"""The runner over a network in memory: outcomes reach their machine once, broken answers do not end the loop."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
from tests.support.nodes.fake_node import HANG_UP, FakeNode
from tests.unit.client.test_connections import BOOTSTRAP, Place, Settings

from ottla.client.connections import BOOTSTRAP_ID
from ottla.client.runtime import ClientRuntime
from ottla.client_core.machine import Channel, Connect, Rebootstrap, Request
from ottla.env.real.clock import RealClock
from ottla.errors import KafkaError, NetworkError, UnsupportedVersionError
from ottla.wire.base import Message
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse
from ottla.wire.messages.produce import ProduceRequest


class Scripted:
    """A machine that sends the given requests and records their outcomes."""

    def __init__(self, *requests: Request, deadline_ms: int | None = None) -> None:
        self.unsent = list(requests)
        self.answers: list[tuple[Any, int]] = []
        self.failures: list[KafkaError] = []
        self.steps = 0
        self.deadline_ms = deadline_ms
        self.fault: Exception | None = None

    def step(self, now_ms: int) -> list[Request]:
        self.steps += 1
        requests, self.unsent = self.unsent, []
        return requests

    def answered(self, request: Request, response: Any, version: int, now_ms: int) -> None:
        if self.fault is not None:
            raise self.fault
        self.answers.append((response, version))

    def failed(self, request: Request, error: KafkaError, now_ms: int) -> None:
        self.failures.append(error)

    def next_deadline_ms(self) -> int | None:
        return self.deadline_ms


def drive(
    handlers: Mapping[type[Message], Callable[[Any, int], object]],
    machine: Scripted,
    until: Callable[[], bool],
    *,
    on_broken: Callable[[Exception], None] | None = None,
    also: Callable[[ClientRuntime], Awaitable[None]] | None = None,
) -> FakeNode:
    node = FakeNode(handlers)

    async def body() -> None:
        place = Place({BOOTSTRAP: node}, Settings())
        runner = ClientRuntime([machine], place.pool, RealClock(), on_broken=on_broken)
        runner.wake()
        try:
            async with asyncio.timeout(60):
                while not until():
                    await asyncio.sleep(0.001)
                if also is not None:
                    await also(runner)
        finally:
            runner.close()
            place.pool.close()

    asyncio.run(body())
    return node


def metadata(request: MetadataRequest, version: int) -> MetadataResponse:
    return MetadataResponse(cluster_id="c")


def test_an_answer_reaches_its_machine_with_its_version() -> None:
    machine = Scripted(Request(MetadataRequest(topics=[])), Request(MetadataRequest(topics=[]), version_max=9))
    drive({MetadataRequest: metadata}, machine, lambda: len(machine.answers) == 2)
    assert [(answer.cluster_id, version) for answer, version in machine.answers] == [("c", 13), ("c", 9)]


def test_a_message_is_made_for_the_version_that_is_used() -> None:
    seen: list[int] = []

    def adapt(version: int) -> MetadataRequest:
        seen.append(version)
        return MetadataRequest(topics=[])

    machine = Scripted(Request(MetadataRequest(), version_max=7, adapt=adapt))
    drive({MetadataRequest: metadata}, machine, lambda: bool(machine.answers))
    assert seen == [7]


def test_a_lost_connection_fails_the_request_once() -> None:
    machine = Scripted(Request(MetadataRequest(topics=[])))
    drive({MetadataRequest: lambda request, version: HANG_UP}, machine, lambda: bool(machine.failures))
    (error,) = machine.failures
    assert isinstance(error, NetworkError)
    assert error.is_retriable
    assert not error.is_unsent


def test_a_rebootstrap_fails_what_is_in_flight_and_is_answered() -> None:
    machine = Scripted(Request(MetadataRequest(topics=[])))

    def asked(request: MetadataRequest, version: int) -> None:
        machine.unsent.append(Rebootstrap("a test"))

    async def rebootstrap(runner: ClientRuntime) -> None:
        runner.wake()
        while not (machine.failures and machine.answers):
            await asyncio.sleep(0.001)

    def is_asked() -> bool:
        return any(isinstance(each, Rebootstrap) for each in machine.unsent)

    node = drive({MetadataRequest: asked}, machine, is_asked, also=rebootstrap)
    (error,) = machine.failures
    assert isinstance(error, NetworkError)
    assert machine.answers == [(None, 0)]
    assert node.connections == 1


def test_a_lost_broker_is_logged_once_until_it_answers(caplog: pytest.LogCaptureFixture) -> None:
    requests = [Request(MetadataRequest(topics=[])) for _ in range(3)]
    machine = Scripted(*requests)
    drive({MetadataRequest: lambda request, version: HANG_UP}, machine, lambda: len(machine.failures) == 3)
    assert [record.getMessage().count("Trying again") for record in caplog.records] == [1]


def test_a_node_that_cannot_be_reached_fails_the_request_as_unsent() -> None:
    machine = Scripted(Request(MetadataRequest(topics=[]), node=5, channel=Channel.GROUP))
    drive({}, machine, lambda: bool(machine.failures))
    assert machine.failures[0].is_unsent


def test_connect_opens_the_connection_and_sends_nothing() -> None:
    machine = Scripted(Connect(BOOTSTRAP_ID))

    async def again(runner: ClientRuntime) -> None:
        machine.unsent.append(Connect(BOOTSTRAP_ID))  # it is open already
        runner.wake()
        while len(machine.answers) < 2:
            await asyncio.sleep(0.001)

    node = drive({}, machine, lambda: bool(machine.answers), also=again)
    assert machine.answers == [(None, 0), (None, 0)]
    assert node.connections == 1
    assert len(node.asked) == 1, "only the exchange of versions that opens a connection"


def test_connect_to_an_unreachable_node_fails() -> None:
    machine = Scripted(Connect(5))
    drive({}, machine, lambda: bool(machine.failures))
    assert machine.failures[0].is_retriable
    assert machine.failures[0].is_unsent


def test_a_message_that_cannot_be_encoded_fails_for_good() -> None:
    machine = Scripted(Request(MetadataRequest(topics=None), version_max=0))
    drive({}, machine, lambda: bool(machine.failures))
    assert isinstance(machine.failures[0], UnsupportedVersionError)
    assert not machine.failures[0].is_retriable


def test_a_request_without_an_answer_is_done_when_it_is_sent() -> None:
    machine = Scripted(Request(ProduceRequest(), BOOTSTRAP_ID, is_answered=False))
    node = drive({ProduceRequest: lambda request, version: None}, machine, lambda: bool(machine.answers))
    assert machine.answers[0][0] is None
    assert node.asked_for(ProduceRequest)


def test_an_answer_that_a_machine_cannot_use_fails_only_that_request(caplog: pytest.LogCaptureFixture) -> None:
    machine = Scripted(Request(MetadataRequest(topics=[])))
    machine.fault = KeyError("orders")

    async def go_on(runner: ClientRuntime) -> None:
        machine.fault = None
        machine.unsent.append(Request(MetadataRequest(topics=[])))
        runner.wake()
        while not machine.answers:
            await asyncio.sleep(0.001)

    drive({MetadataRequest: metadata}, machine, lambda: bool(machine.failures), also=go_on)
    assert "cannot be used" in str(machine.failures[0])
    assert machine.answers


def test_a_machine_whose_step_fails_ends_the_runner_and_tells_its_owner() -> None:
    machine = Scripted()
    broken: list[Exception] = []

    def step(now_ms: int) -> list[Request]:
        raise ZeroDivisionError("a bug")

    machine.step = step  # type: ignore[method-assign]
    drive({}, machine, lambda: bool(broken), on_broken=broken.append)
    assert isinstance(broken[0], ZeroDivisionError)


def test_a_deadline_leads_to_another_step() -> None:
    machine = Scripted(deadline_ms=int(RealClock().monotonic_s() * 1000) + 30)
    drive({}, machine, lambda: machine.steps >= 2)


def test_an_observer_sees_requests_answers_and_failures() -> None:
    seen: list[tuple[str, object, object]] = []

    class Observing:
        def sent(self, request: Request, message: Message, version: int) -> None:
            seen.append(("sent", message, version))

        def answered(self, request: Request, response: Any, version: int) -> None:
            seen.append(("answered", response.cluster_id, version))

        def failed(self, request: Request, error: KafkaError) -> None:
            seen.append(("failed", type(error), error.is_unsent))

    made = MetadataRequest(topics=[])
    machine = Scripted()

    async def observe(runner: ClientRuntime) -> None:
        runner.observer = Observing()
        machine.unsent = [Request(MetadataRequest(), adapt=lambda version: made)]
        runner.wake()
        while not machine.answers:
            await asyncio.sleep(0.001)
        machine.unsent = [Request(MetadataRequest(topics=[]), node=5)]
        runner.wake()
        while not machine.failures:
            await asyncio.sleep(0.001)

    drive({MetadataRequest: metadata}, machine, lambda: True, also=observe)
    assert seen == [("sent", made, 13), ("answered", "c", 13), ("failed", NetworkError, True)]
