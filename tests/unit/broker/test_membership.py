"""A broker as a member of its cluster: what it tells of failed directories, and when."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.broker.membership import Membership
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid

DIRECTORY = Uuid(bytes(range(16)))


class FakeController:
    """Counts what it is asked, and refuses if told to."""

    def __init__(self, refusal: KafkaError | None = None) -> None:
        self.asked = 0
        self.published = SimpleNamespace(provenance=SimpleNamespace(offset=0))
        self._refusal = refusal

    async def write(self, decide: object) -> None:
        self.asked += 1
        if self._refusal is not None:
            raise self._refusal


def member(controller: Any, epoch: int) -> Membership:
    membership = Membership(controller, "cluster", 1)
    membership.epoch = epoch
    return membership


def test_a_directory_lost_before_the_broker_is_registered_is_told_later() -> None:
    controller = FakeController()
    membership = member(controller, epoch=-1)
    asyncio.run(membership.tell_lost(DIRECTORY))
    assert controller.asked == 0
    membership.epoch = 7
    asyncio.run(membership.tell_lost(DIRECTORY))
    assert controller.asked == 1


def test_a_controller_that_does_not_listen_is_no_failure_of_the_node(caplog: pytest.LogCaptureFixture) -> None:
    controller = FakeController(KafkaError(ErrorCode.NOT_CONTROLLER, "ask again later"))
    asyncio.run(member(controller, epoch=7).tell_lost(DIRECTORY))
    assert controller.asked == 1
    assert "ask again later" in caplog.text
