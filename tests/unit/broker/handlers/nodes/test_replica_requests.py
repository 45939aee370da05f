"""Requests between replicas reach the quorum, and a failure gives a response of the same API."""

from types import SimpleNamespace
from typing import Any, cast

from ottla.broker.handlers.nodes import replica_requests
from ottla.broker.requests.context import ConnectionInfo, Pending, RequestContext
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.fetch import FetchRequest, FetchResponse
from ottla.wire.messages.vote import VoteRequest, VoteResponse


def context(key: int, services: object = None) -> RequestContext:
    return RequestContext(cast(Any, services), ConnectionInfo(1, "CONTROLLER", ("h", 1), True), key, 1, 1, "c", 0.0)


def test_the_replica_is_asked_with_version_and_listener() -> None:
    asked: list[object] = []

    def ask(*arguments: object) -> Pending:
        asked.extend(arguments)
        return Pending()

    request = VoteRequest()
    replica_requests.handle(context(52, SimpleNamespace(quorum=SimpleNamespace(ask=ask))), request)
    assert asked == [request, 1, "CONTROLLER"]


def test_failures_become_responses_of_their_api() -> None:
    error = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "why")
    vote = replica_requests.refuse(context(52), VoteRequest(), error)
    assert isinstance(vote, VoteResponse)
    assert vote.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert isinstance(replica_requests.refuse(context(1), FetchRequest(), error), FetchResponse)
