"""The operator repeats a request until its change is made, and fails the run if it never is."""

import asyncio
from typing import Any

import pytest

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.sim.checkers.checker import Checkers, Violation
from ottla.sim.clients.client import Stage
from ottla.sim.cluster.operator import CHANGE_S_MAX, Operator

DONE_ALREADY = ErrorCode.VOTER_NOT_FOUND


def asked(on_nodes: Any, *answers: ErrorCode) -> int:
    """How often a request is sent that gets these answers; the last one again and again."""
    calls: list[ErrorCode] = []

    async def call() -> None:
        calls.append(answers[min(len(calls), len(answers) - 1)])
        if calls[-1] != ErrorCode.NONE:
            raise KafkaError(calls[-1], "no")

    async def body(nodes: Any) -> None:
        operator = Operator(Stage(1, nodes.network, nodes.trace, Checkers([]), ("n1", "n2", "n3")))
        begun_s = asyncio.get_running_loop().time()
        try:
            await operator.make("removes n1", call, DONE_ALREADY)
        finally:
            assert asyncio.get_running_loop().time() - begun_s < CHANGE_S_MAX + 1

    on_nodes(body)
    return len(calls)


def test_a_refused_request_is_repeated(on_nodes: Any) -> None:
    assert asked(on_nodes, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_CONTROLLER, ErrorCode.NONE) == 3


def test_a_change_that_was_made_already_is_not_asked_for_again(on_nodes: Any) -> None:
    assert asked(on_nodes, ErrorCode.REQUEST_TIMED_OUT, DONE_ALREADY) == 2


def test_a_change_that_is_never_made_is_a_violation(on_nodes: Any) -> None:
    with pytest.raises(Violation, match=r"operator removes n1: refused for 60 s"):
        asked(on_nodes, ErrorCode.REQUEST_TIMED_OUT)
