"""Parked requests: large responses and refusals are encoded off the loop, and are the same as those encoded on it."""

import asyncio
import gc
import weakref
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.nodes.rules import Throttling

from ottla.broker.requests import parked as parking
from ottla.broker.requests.context import CloseConnection, ConnectionInfo, Handled, Pending, RequestContext
from ottla.broker.requests.parked import Parked
from ottla.broker.requests.pipeline import RequestPipeline, Route
from ottla.broker.requests.scheduler import SMALL_CALL_BYTES, SlicedWork
from ottla.env import OffLoop, Steps
from ottla.errors import KafkaError, drop_frames
from ottla.errors.codes import ErrorCode
from ottla.wire.api_table import ApiKey
from ottla.wire.base import Message
from ottla.wire.codec import join_parts
from ottla.wire.headers import encode_response
from ottla.wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse

VERSION = 6
MANY = 1000


class Scene:
    """A pipeline whose workers count their calls, and one parked request of DeleteTopics."""

    def __init__(self, frame_bytes: int = 100, refusal: Exception | None = None) -> None:
        self.pipeline = RequestPipeline()
        self.pipeline.services = SimpleNamespace(metadata=SimpleNamespace(topic_by_id=lambda _: None))  # type: ignore[assignment]
        self.pipeline.scheduler.workers = self
        self.calls = 0
        self.refusal = refusal
        counters = self.pipeline.counters.of(ApiKey.DELETE_TOPICS)
        self.route = Route(ApiKey.DELETE_TOPICS, self, VERSION, counters, is_searched=True)  # type: ignore[arg-type]
        info = ConnectionInfo(1, "PLAINTEXT", ("peer", 1))
        services: Any = SimpleNamespace(scheduler=self.pipeline.scheduler)
        self.context = RequestContext(services, info, ApiKey.DELETE_TOPICS, VERSION, 5, "client", 0.0)
        self.pending = Pending()
        self.parked = Parked(self.pipeline, self.route, self.context, DeleteTopicsRequest(), frame_bytes, self.pending)

    async def run(self, call: Any) -> Any:
        self.calls += 1
        return call()

    def handle(self, context: RequestContext, request: Any) -> Message:
        raise NotImplementedError

    def refuse(self, context: RequestContext, request: Any, error: KafkaError) -> Message:
        if self.refusal is not None:
            raise self.refusal
        return response_of(3, error.code)

    async def ready(self) -> None:
        while not self.parked.is_ready:
            await asyncio.sleep(0)


def response_of(count: int, code: int = 0) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(responses=[DeletableTopicResult(name=f"t{each}", error_code=code) for each in range(count)])


@pytest.mark.parametrize("may_be_large", [False, True])
@pytest.mark.parametrize("count", [1, MANY])
def test_large_responses_are_encoded_off_the_loop(monkeypatch: pytest.MonkeyPatch, may_be_large: bool, count: int) -> None:
    monkeypatch.setattr(Pending, "may_be_large", may_be_large)

    async def scenario() -> None:
        scene = Scene()
        response = response_of(count, ErrorCode.INVALID_REQUEST)
        scene.pending.complete(response)
        await scene.ready()
        assert scene.calls == (may_be_large and count == MANY)
        assert scene.parked.parts is not None
        assert join_parts(scene.parked.parts) == join_parts(encode_response(response, VERSION, 5))
        assert (scene.route.counters.requests, scene.route.counters.errors) == (1, 1)

    asyncio.run(scenario())


@pytest.mark.parametrize("frame_bytes", [100, parking.PARSED_ON_LOOP_BYTES + 1])
def test_refusals_of_large_requests_are_made_off_the_loop(monkeypatch: pytest.MonkeyPatch, frame_bytes: int) -> None:
    monkeypatch.setattr(Pending, "may_be_large", True)

    async def scenario() -> None:
        scene = Scene(frame_bytes)
        scene.pending.fail(KafkaError(ErrorCode.POLICY_VIOLATION, "too many"))
        await scene.ready()
        assert scene.calls == (frame_bytes > 100)
        assert scene.parked.parts is not None
        expected = encode_response(response_of(3, ErrorCode.POLICY_VIOLATION), VERSION, 5)
        assert join_parts(scene.parked.parts) == join_parts(expected)
        assert (scene.route.counters.requests, scene.route.counters.errors) == (1, 1)

    asyncio.run(scenario())


@pytest.mark.parametrize("frame_bytes", [100, parking.PARSED_ON_LOOP_BYTES + 1])
@pytest.mark.parametrize("is_refused", [False, True])
def test_throttle_time_is_in_replies_that_are_made_off_the_loop(
    monkeypatch: pytest.MonkeyPatch, frame_bytes: int, is_refused: bool
) -> None:
    monkeypatch.setattr(Pending, "may_be_large", True)

    async def scenario() -> None:
        scene = Scene(frame_bytes)
        scene.pipeline.throttling.rule = Throttling(70)
        expected = response_of(3, ErrorCode.POLICY_VIOLATION) if is_refused else response_of(MANY)
        if is_refused:
            scene.pending.fail(KafkaError(ErrorCode.POLICY_VIOLATION, "too many"))
        else:
            scene.pending.complete(response_of(MANY))
        await scene.ready()
        assert scene.parked.parts is not None
        expected.throttle_time_ms = 70
        assert join_parts(scene.parked.parts) == join_parts(encode_response(expected, VERSION, 5))
        assert scene.context.connection.muted_until_s > 0

    asyncio.run(scenario())


@pytest.mark.parametrize("refusal", [CloseConnection("acks=0"), ValueError("a bug")])
def test_refusal_off_the_loop_may_close_the_connection(monkeypatch: pytest.MonkeyPatch, refusal: Exception) -> None:
    monkeypatch.setattr(Pending, "may_be_large", True)

    async def scenario() -> None:
        scene = Scene(parking.PARSED_ON_LOOP_BYTES + 1, refusal)
        scene.pending.fail(KafkaError(ErrorCode.POLICY_VIOLATION, "too many"))
        await scene.ready()
        assert isinstance(scene.parked.fault, CloseConnection)
        assert scene.parked.parts is None

    asyncio.run(scenario())


def test_abandoned_request_is_not_concluded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pending, "may_be_large", True)

    async def scenario() -> None:
        scene = Scene()
        scene.pending.complete(response_of(MANY))
        scene.parked.abandon()
        for _ in range(10):
            await asyncio.sleep(0)
        assert not scene.parked.is_ready
        assert scene.route.counters.requests == 0

    asyncio.run(scenario())


def test_refused_request_is_gone_once_it_is_answered() -> None:
    """The frames of a failure refer to the request, and what parked the request to the failure."""

    class Large(SlicedWork):
        __slots__ = ("__weakref__",)

    def refusing() -> Steps[Handled]:
        yield None
        raise KafkaError(ErrorCode.NOT_COORDINATOR, "ask another")

    async def scenario() -> None:
        scene = Scene()
        work = Large(scene.pipeline.scheduler, scene.context, refusing())
        parked = Parked(scene.pipeline, scene.route, scene.context, DeleteTopicsRequest(), 100, work)
        gone = weakref.ref(work)
        gc.disable()
        try:
            work.run(scene.pipeline.scheduler.now_s() + 60)
            assert parked.is_ready
            del work, parked
            assert gone() is None
        finally:
            gc.enable()

    asyncio.run(scenario())


def test_what_a_failed_call_held_is_gone_while_its_work_goes_on() -> None:
    """The frames of a failure hold what the call had made, perhaps a decompressed batch."""

    class Made:
        pass

    made: list[weakref.ref[Made]] = []

    def failing() -> None:
        held = Made()
        made.append(weakref.ref(held))
        raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, "too large")

    def steps() -> Steps[Handled]:
        try:
            yield OffLoop(failing, SMALL_CALL_BYTES)
        except KafkaError as error:
            drop_frames(error)
        yield None
        assert made[0]() is None
        return DeleteTopicsResponse()

    async def scenario() -> None:
        scene = Scene()
        work = SlicedWork(scene.pipeline.scheduler, scene.context, steps())
        gc.disable()
        try:
            work.run(scene.pipeline.scheduler.now_s())
            while not work.is_done:
                await asyncio.sleep(0)
        finally:
            gc.enable()
        assert work.outcome[1] is None

    asyncio.run(scenario())
