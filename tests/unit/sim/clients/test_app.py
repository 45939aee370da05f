"""A program does not go on with committed offsets of a coordinator that was deposed."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.nodes.sim_stage import TOPIC, Recording, on_stage

from ottla.client_core.machine import Request
from ottla.errors.codes import ErrorCode
from ottla.sim.checkers.checker import Place
from ottla.sim.clients.app import App, Vanished, _InputObserver
from ottla.sim.clients.client import Stage
from ottla.sim.plan import AppPlan
from ottla.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse, OffsetFetchResponseGroup


class OneRecord:
    """A consumer whose poll returns something."""

    async def poll(self, *_: Any) -> list[object]:
        return [object()]


def on_app(body: Callable[[App, _InputObserver], None]) -> None:
    """Call `body` with a program whose group is coordinated by node 1."""

    def with_stage(stage: Stage, _: Recording) -> None:
        stage.is_coordinator = lambda group, node, since_s: (group, node) == ("app-group", 1)
        app = App(stage, "app.0", AppPlan("app", True, (2,), 1000), 2, [Place(TOPIC, 0)], [])
        app._reading = _InputObserver(app)
        body(app, app._reading)

    on_stage(with_stage)


def answer(observer: _InputObserver, node: int, code: int = ErrorCode.NONE) -> None:
    message = OffsetFetchRequest()
    request = Request(message, node)
    observer.sent(request, message, 10)
    observer.answered(request, OffsetFetchResponse(groups=[OffsetFetchResponseGroup(error_code=code)]), 10)


def test_offsets_of_a_deposed_coordinator_mislead() -> None:
    def body(app: App, observer: _InputObserver) -> None:
        answer(observer, 2, ErrorCode.NOT_COORDINATOR)
        answer(observer, 1)
        assert (observer.coordinator, observer.is_misled) == (1, False)
        answer(observer, 2)
        assert (observer.coordinator, observer.is_misled) == (2, True)
        answer(observer, 1)
        assert observer.is_misled, "some positions are from the deposed one"

    on_app(body)


def test_a_misled_program_vanishes_before_its_next_transaction() -> None:
    def body(app: App, observer: _InputObserver) -> None:
        answer(observer, 2)
        nothing: Any = None
        consumer: Any = OneRecord()
        with pytest.raises(Vanished):
            app._transact(nothing, nothing, consumer, nothing).send(None)

    on_app(body)
