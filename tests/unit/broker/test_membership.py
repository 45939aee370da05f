"""A broker as a member of its cluster: what it tells of failed directories, and when."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.broker.membership import Membership
from ottla.broker.metadata_cache import MetadataCache
from ottla.broker.partitions.assignments import Assignment, DirectoryAssignments
from ottla.errors import KafkaError, LogDirectoryFailed, OttlaError
from ottla.errors.codes import ErrorCode
from ottla.ids import Uuid

DIRECTORY = Uuid(bytes(range(16)))


class FakeController:
    """Counts what it is asked, and refuses if told to."""

    def __init__(self, refusal: OttlaError | None = None) -> None:
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


def test_cordoned_directories_are_told_before_the_broker_is_let_in_and_when_they_change() -> None:
    told: list[Any] = []

    class Controller(FakeController):
        state = SimpleNamespace(settings=SimpleNamespace(supported_features={}))

        async def write(self, decide: Any) -> Any:
            told.append(decide.__closure__)
            return SimpleNamespace(broker_epoch=7, is_fenced=False)

    membership = Membership(Controller(), "cluster", 1)  # type: ignore[arg-type]  # the part used

    async def scenario() -> None:
        await membership.join([], [DIRECTORY], [DIRECTORY], rack=None, incarnation_id=DIRECTORY, last_epoch=-1)
        await membership.tell_cordoned([])

    asyncio.run(scenario())
    requests = [cell.cell_contents for closure in told for cell in closure if hasattr(cell.cell_contents, "cordoned_log_dirs")]
    assert [request.cordoned_log_dirs for request in requests] == [[DIRECTORY], []]


@pytest.mark.parametrize(
    ("refusal", "text"),
    [
        (KafkaError(ErrorCode.NOT_CONTROLLER, "ask again later"), "ask again later"),
        (LogDirectoryFailed("/a", OSError(5, "broken")), "/a failed"),
    ],
)
def test_a_controller_that_cannot_write_it_down_is_no_failure_of_its_own(
    refusal: OttlaError, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    controller = FakeController(refusal)
    asyncio.run(member(controller, epoch=7).tell_lost(DIRECTORY))
    assert controller.asked == 1
    assert text in caplog.text


@pytest.mark.parametrize(
    "refusal", [KafkaError(ErrorCode.NOT_CONTROLLER, "later"), LogDirectoryFailed("/a", OSError(5, "broken"))]
)
def test_nor_when_it_is_told_where_partitions_are(refusal: OttlaError, caplog: pytest.LogCaptureFixture) -> None:
    async def tell() -> None:
        partitions: Any = SimpleNamespace(node_id=1)
        controller: Any = FakeController(refusal)
        assignments = DirectoryAssignments(partitions, MetadataCache(), controller)
        assignments._is_due = True
        assignments._unknown = lambda: [Assignment(DIRECTORY, 0, DIRECTORY)]  # type: ignore[method-assign]
        await assignments._tell()

    asyncio.run(tell())
    assert "could not report to the controller in which directories partitions are" in caplog.text
