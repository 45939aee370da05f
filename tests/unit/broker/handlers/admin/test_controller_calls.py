"""Requests that are passed to the controller: what becomes of those that it does not answer."""

import asyncio
from typing import Any

import pytest
from tests.support.nodes.config_node import DIRECTORY_ID, ConfigNode
from tests.support.nodes.held_partitions import virtual
from tests.support.nodes.images import context_of, image_of

from ottla.broker.channel.forwarded import ForwardedRequest
from ottla.broker.handlers.admin import raft_voters
from ottla.broker.handlers.admin.controller_calls import ask_controller
from ottla.broker.requests.context import future_of
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.image.image import MetadataImage
from ottla.wire.api_table import ApiKey
from ottla.wire.base import Message
from ottla.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from ottla.wire.messages.create_topics import CreateTopicsRequest
from ottla.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from ottla.wire.messages.metadata_records import PartitionChangeRecord
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse


class SilentChannel:
    """A controller without a quorum."""

    def __init__(self) -> None:
        self.waiting = 0

    async def forward(self, request: Any, timeout_ms: int | None = None) -> None:
        self.waiting += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.waiting -= 1


@pytest.mark.parametrize(("timeout_ms", "still_waiting"), [(100, 1), (3_600_000, 0)], ids=["timed out", "given up"])
def test_request_without_an_answer_is_refused_in_time_or_given_up(timeout_ms: int, still_waiting: int) -> None:
    """After its time the change may still be made; one that is given up has to free its memory."""

    async def scenario() -> None:
        channel = SilentChannel()
        context = context_of(MetadataImage(), ApiKey.CREATE_TOPICS, 7, channel=channel)
        pending = ask_controller(context, CreateTopicsRequest(), timeout_ms)
        await asyncio.sleep(1)
        if not pending.is_done:
            assert channel.waiting == 1
            pending.give_up()
            await asyncio.sleep(0)
        _, failure = pending.outcome
        assert isinstance(failure, KafkaError)
        assert failure.code == ErrorCode.REQUEST_TIMED_OUT
        await asyncio.sleep(1)
        assert channel.waiting == still_waiting

    virtual(scenario())


class ChannelWithoutController:
    """Tries until its timeout, as `RemoteChannel` does."""

    async def forward(self, request: Any, timeout_ms: int) -> None:
        await asyncio.sleep(timeout_ms / 1000 + 0.05)
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "no controller is known. Nothing was changed")


@pytest.mark.parametrize("timeout_ms", [1_000, 30_000])
def test_the_doors_reason_comes_before_the_clients_timeout(timeout_ms: int) -> None:
    async def scenario() -> None:
        context = context_of(MetadataImage(), ApiKey.CREATE_TOPICS, 7, channel=ChannelWithoutController())
        pending = ask_controller(context, CreateTopicsRequest(), timeout_ms)
        await asyncio.sleep(timeout_ms / 1000 - 0.01)
        assert str(pending.outcome[1]) == "no controller is known. Nothing was changed"

    virtual(scenario())


@pytest.mark.parametrize(
    ("key", "request_", "says_change"),
    [
        (ApiKey.CREATE_TOPICS, CreateTopicsRequest(), True),
        (ApiKey.LIST_PARTITION_REASSIGNMENTS, ListPartitionReassignmentsRequest(), False),
    ],
)
def test_only_a_change_may_still_take_effect(key: ApiKey, request_: Message, says_change: bool) -> None:
    async def scenario() -> None:
        context = context_of(MetadataImage(), key, 0, channel=SilentChannel())
        pending = ask_controller(context, request_, 100)
        await asyncio.sleep(1)
        assert ("take effect" in str(pending.outcome[1])) == says_change

    virtual(scenario())


def test_controller_is_asked() -> None:
    node = ConfigNode()
    assert node.ask(ListPartitionReassignmentsRequest(topics=None)).topics == []
    topic_id = node.metadata.image.topics.by_name["t"].id
    node.replay(
        PartitionChangeRecord(
            partition_id=0, topic_id=topic_id, replicas=[1, 2], adding_replicas=[2], directories=[DIRECTORY_ID] * 2
        )
    )
    [listed] = node.ask(ListPartitionReassignmentsRequest(topics=None)).topics
    assert (listed.name, listed.partitions[0].adding_replicas) == ("t", [2])


class Channel:
    def __init__(self, answer: Message | KafkaError) -> None:
        self.answer = answer
        self.forwarded: list[tuple[Message, int | None]] = []

    async def forward(self, request: ForwardedRequest, timeout_ms: int | None = None) -> Any:
        self.forwarded.append((request.message, timeout_ms))
        if isinstance(self.answer, KafkaError):
            raise self.answer
        return self.answer

    async def caught_up(self) -> None:
        """As a loader: everything is published at once."""


@pytest.mark.parametrize(
    ("request_", "timeout_ms", "answer"),
    [
        (AddRaftVoterRequest(voter_id=2, timeout_ms=700), 630, AddRaftVoterResponse(error_code=ErrorCode.DUPLICATE_VOTER)),
        (RemoveRaftVoterRequest(voter_id=2), None, RemoveRaftVoterResponse(error_code=ErrorCode.VOTER_NOT_FOUND)),
    ],
)
def test_request_is_forwarded_with_a_little_less_than_its_timeout(
    request_: Message, timeout_ms: int | None, answer: Message
) -> None:
    async def scene() -> None:
        channel = Channel(answer)
        context = context_of(image_of([], {}), request_.KEY, 0, channel=channel, loader=channel)
        assert await future_of(raft_voters.handle(context, request_)) is answer
        assert channel.forwarded == [(request_, timeout_ms)]
        channel.answer = KafkaError(ErrorCode.REQUEST_TIMED_OUT, "no controller has answered")
        with pytest.raises(KafkaError) as refused:
            await future_of(raft_voters.handle(context, request_))
        response: Any = raft_voters.refuse(context, request_, refused.value)
        assert type(response) is type(answer)
        assert (response.error_code, response.error_message) == (ErrorCode.REQUEST_TIMED_OUT, "no controller has answered")

    asyncio.run(scene())
