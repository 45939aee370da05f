"""Requests that a test interferes with. What faults do with them is in `tests/unit/testing`."""

import asyncio

from ottla.broker.requests.context import Pending
from ottla.broker.requests.interception import InterceptedRequest, Interception
from ottla.wire.messages.fetch import FetchResponse


class Fetching(Pending):
    """A fetch that waits until it is to be answered now."""

    def answer_now(self) -> None:
        self.complete(FetchResponse())


def test_a_request_that_waits_is_answered_when_the_node_stops() -> None:
    async def scenario() -> None:
        request = InterceptedRequest(Interception(rewrite=lambda response: response), Fetching)
        assert not request.is_done
        request.answer_now()
        assert isinstance(request.outcome[0], FetchResponse)

    asyncio.run(scenario())


def test_a_request_that_is_delayed_is_not_handled_sooner() -> None:
    async def scenario() -> None:
        request = InterceptedRequest(Interception(delay_s=60), Fetching)
        request.answer_now()
        assert not request.is_done
        request.abandon()

    asyncio.run(scenario())
