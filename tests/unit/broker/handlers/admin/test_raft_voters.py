"""AddRaftVoter and RemoveRaftVoter on a broker's listener: the controller's answer, or why there is none."""

import asyncio
from typing import Any

import pytest
from tests.support.nodes.images import context_of, image_of

from ottla.broker.channel.forwarded import ForwardedRequest
from ottla.broker.handlers.admin import raft_voters
from ottla.broker.requests.context import future_of
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.base import Message
from ottla.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from ottla.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse


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
