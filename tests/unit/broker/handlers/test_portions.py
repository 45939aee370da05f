"""Requests with many elements in portions: how they are split, and how the responses are joined."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.broker.handlers import portions
from ottla.broker.handlers.portions import PendingPortions, handle_in_portions, portions_of
from ottla.broker.requests.context import ConnectionInfo, Handled, Pending, RequestContext
from ottla.broker.requests.scheduler import Scheduler
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.base import Message
from ottla.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)


def topic(name: str, count: int) -> OffsetCommitRequestTopic:
    return OffsetCommitRequestTopic(
        name=name, partitions=[OffsetCommitRequestPartition(partition_index=index) for index in range(count)]
    )


def response_to(request: OffsetCommitRequest, code: int = 0) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=each.name,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=part.partition_index, error_code=code)
                    for part in each.partitions
                ],
            )
            for each in request.topics
        ]
    )


def refuse(context: RequestContext, request: OffsetCommitRequest, error: KafkaError) -> Message:
    return response_to(request, error.code)


def shape(topics: list[Any]) -> list[tuple[str, list[int]]]:
    return [(each.name, [part.partition_index for part in each.partitions]) for each in topics]


@pytest.fixture(autouse=True)
def small_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portions, "PORTION", 5)


def test_portions_have_a_bounded_number_of_elements_in_the_same_order() -> None:
    wanted = [topic("a", 2), topic("b", 12), topic("c", 0), topic("d", 1)]
    split = list(portions_of(wanted, "partitions"))
    assert all(sum(1 + len(each.partitions) for each in portion) <= 6 for portion in split)
    joined: dict[str, list[int]] = {}
    for portion in split:
        for name, indexes in shape(portion):
            joined.setdefault(name, []).extend(indexes)
    assert list(joined.items()) == shape(wanted)
    assert shape(wanted)[1] == ("b", list(range(12))), "the request itself is not changed"


def new_context() -> RequestContext:
    services: Any = SimpleNamespace(scheduler=Scheduler())
    return RequestContext(services, ConnectionInfo(1, "PLAINTEXT", ("peer", 1)), 8, 9, 5, "client", 0.0)


def handled(request: OffsetCommitRequest, fails_from: int = 10**9) -> tuple[list[OffsetCommitRequest], Message]:
    """What each portion was, and the joined response; portions from `fails_from` on are refused."""
    seen: list[OffsetCommitRequest] = []

    def handle(context: RequestContext, part: OffsetCommitRequest) -> Handled:
        seen.append(part)
        if len(seen) > fails_from:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION, "too late")
        return response_to(part)

    async def run() -> Message:
        return await handle_in_portions(new_context(), request, handle, refuse, "topics", "partitions")

    return seen, asyncio.run(run())


def test_responses_are_joined_as_if_the_request_was_handled_whole() -> None:
    request = OffsetCommitRequest(group_id="g", topics=[topic("a", 2), topic("b", 12), topic("c", 3)])
    seen, response = handled(request)
    assert len(seen) > 3
    assert {each.group_id for each in seen} == {"g"}
    assert isinstance(response, OffsetCommitResponse)
    assert shape(response.topics) == shape(request.topics)


def test_refused_portion_has_errors_for_its_own_elements() -> None:
    _, response = handled(OffsetCommitRequest(topics=[topic("a", 12)]), fails_from=1)
    assert isinstance(response, OffsetCommitResponse)
    codes = [part.error_code for part in response.topics[0].partitions]
    assert codes == [0] * 5 + [ErrorCode.ILLEGAL_GENERATION] * 7


def test_portions_end_when_the_request_is_abandoned() -> None:
    async def run() -> None:
        request = OffsetCommitRequest(topics=[topic("a", 12)])
        begun: list[tuple[OffsetCommitRequest, Pending]] = []

        def handle(context: RequestContext, part: OffsetCommitRequest) -> Handled:
            begun.append((part, Pending()))
            return begun[-1][1]

        pending = PendingPortions(handle_in_portions(new_context(), request, handle, refuse, "topics", "partitions"))
        while not begun:
            await asyncio.sleep(0)
        pending.abandon()
        part, answer = begun[0]
        answer.complete(response_to(part))
        while not pending.task.done() and len(begun) == 1:
            await asyncio.sleep(0)
        assert len(begun) == 1
        assert pending.task.cancelled()

    asyncio.run(run())
