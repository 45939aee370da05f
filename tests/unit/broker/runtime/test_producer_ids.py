"""Producer ids: blocks from the controller, shared by all waiters, no id assigned twice."""

import asyncio
from typing import Any

import pytest
from tests.support.nodes.controller_cluster import ControllerCluster
from tests.support.nodes.data_node import run

from ottla.broker.runtime import producer_ids
from ottla.broker.runtime.producer_ids import ProducerIds
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.controller.apis import decision_of
from ottla.wire.base import Message


class Controller:
    """Decides and replays at once; answers a moment later, as after a commit."""

    def __init__(self) -> None:
        self.cluster = ControllerCluster()
        self.cluster.add_broker(1)
        self.writes = 0
        self.lose_the_answer = False
        self.answers = asyncio.Event()
        """Clear: requests are not answered."""
        self.answers.set()

    @property
    def epoch(self) -> int:
        return self.cluster.state.image.cluster.brokers[1].epoch

    async def call(self, request: Message, timeout_ms: int | None = None) -> Any:
        self.writes += 1
        await self.answers.wait()
        decide = decision_of(request.KEY)
        response = self.cluster.apply(decide(self.cluster.state, request, self.cluster.now_ms, 0))
        await asyncio.sleep(0)
        if self.lose_the_answer:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "stopping")
        return response

    def node(self) -> ProducerIds:
        return ProducerIds(1, self, lambda: self.epoch)  # type: ignore[arg-type]  # the part of the channel that is used


async def taken(ids: ProducerIds, count: int) -> list[int]:
    return list(await asyncio.gather(*(ids.wait_and_take() for _ in range(count))))


def test_take_returns_none_without_a_block() -> None:
    ids = Controller().node()
    assert ids.take() is None
    assert run(ids.wait_and_take()) == 0
    assert ids.take() == 1


def test_those_who_wait_share_one_block() -> None:
    controller = Controller()
    assert sorted(run(taken(controller.node(), 700))) == list(range(700))
    assert controller.writes == 1
    assert controller.cluster.state.image.next_producer_id == 1000


def test_more_waiters_than_ids_allocate_further_blocks() -> None:
    controller = Controller()
    assert sorted(run(taken(controller.node(), 2500))) == list(range(2500))
    assert controller.writes == 3


def test_next_block_is_allocated_before_the_current_one_is_used_up() -> None:
    async def scene() -> None:
        controller = Controller()
        ids = controller.node()
        assert await taken(ids, 899) == list(range(899))
        assert controller.writes == 1
        controller.answers.clear()  # the controller fails over
        assert ids.take() == 899
        await asyncio.sleep(0)
        assert controller.writes == 2
        assert [ids.take() for _ in range(101)] == [*range(900, 1000), None]
        assert controller.writes == 2, "one request at a time"
        controller.answers.set()
        assert await ids.wait_and_take() == 1000

    run(scene())


def test_callers_do_not_wait_for_a_controller_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> None:
        monkeypatch.setattr(producer_ids, "WAIT_S", 0.01)
        controller = Controller()
        ids = controller.node()
        controller.answers.clear()
        for _ in range(2):
            with pytest.raises(KafkaError) as refused:
                await ids.wait_and_take()
            assert refused.value.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        controller.answers.set()
        assert await ids.wait_and_take() == 0
        assert controller.writes == 1, "the first request went on"

    run(scene())


def test_failed_request_for_the_next_block_is_repeated() -> None:
    async def scene() -> None:
        controller = Controller()
        ids = controller.node()
        await taken(ids, 899)
        controller.lose_the_answer = True
        assert ids.take() == 899
        while controller.writes < 2 or ids._renewal is not None:
            await asyncio.sleep(0)
        controller.lose_the_answer = False
        assert await taken(ids, 101) == [*range(900, 1000), 2000]

    run(scene())


def test_unused_ids_are_never_assigned_after_a_restart() -> None:
    controller = Controller()
    given: list[int] = []
    for _ in range(5):  # one node, started five times
        given += run(taken(controller.node(), 3))
    assert given == [life * 1000 + number for life in range(5) for number in range(3)]


def test_block_whose_response_was_lost_is_not_assigned() -> None:
    controller = Controller()
    ids = controller.node()
    controller.lose_the_answer = True
    for _ in range(2):
        with pytest.raises(KafkaError) as refused:
            run(ids.wait_and_take())
        assert refused.value.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    controller.lose_the_answer = False
    assert run(ids.wait_and_take()) == 2000


def test_cancelled_waiter_takes_no_id_from_the_others() -> None:
    async def scene() -> list[int]:
        ids = Controller().node()
        waiters = [asyncio.create_task(ids.wait_and_take()) for _ in range(3)]
        await asyncio.sleep(0)
        waiters[0].cancel()
        return list(await asyncio.gather(*waiters[1:]))

    assert run(scene()) == [0, 1]


def test_stale_broker_epoch_becomes_a_retriable_error() -> None:
    controller = Controller()
    ids = ProducerIds(1, controller, lambda: 12345)  # type: ignore[arg-type]
    with pytest.raises(KafkaError, match="register again") as refused:
        run(ids.wait_and_take())
    assert ErrorCode(refused.value.code).retriable
