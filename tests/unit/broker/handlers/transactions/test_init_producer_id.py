"""InitProducerId: ids for idempotent producers, refusals for the others."""

import pytest
from tests.support.nodes.data_node import DataNode

from ottla.broker.handlers.transactions import init_producer_id
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.init_producer_id import InitProducerIdRequest

REFUSED = (-1, -1)


class Ids:
    """A block that is used up, then a new one; or none at all."""

    def __init__(self, refuses: bool = False) -> None:
        self.left = [7]
        self.refuses = refuses

    def take(self) -> int | None:
        return self.left.pop(0) if self.left else None

    async def wait_and_take(self) -> int:
        if self.refuses:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "none now")
        self.left = [1001]
        return 1000


def ask(ids: Ids, transactional_id: str | None = None, producer: tuple[int, int] = REFUSED) -> tuple[int, int, int]:
    node = DataNode()
    node.services["producer_ids"] = ids
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=1000, producer_id=producer[0], producer_epoch=producer[1]
    )
    response = node.ask(init_producer_id, request, 5)
    return response.error_code, response.producer_id, response.producer_epoch


def test_each_producer_gets_another_id_in_epoch_0() -> None:
    ids = Ids()
    assert [ask(ids) for _ in range(3)] == [(0, 7, 0), (0, 1000, 0), (0, 1001, 0)]


def test_idempotent_producer_with_an_old_id_gets_a_new_one() -> None:
    assert ask(Ids(), producer=(5, 1)) == (0, 7, 0)


@pytest.mark.parametrize("producer", [(5, -1), (-1, 5)])
def test_producer_id_without_epoch_is_refused(producer: tuple[int, int]) -> None:
    assert ask(Ids(), producer=producer) == (ErrorCode.INVALID_REQUEST, *REFUSED)


def test_without_a_block_the_producer_may_try_again() -> None:
    ids = Ids(refuses=True)
    assert ask(ids) == (0, 7, 0)
    assert ask(ids) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, *REFUSED)


def test_a_transactional_id_must_not_be_empty() -> None:
    assert ask(Ids(), "") == (ErrorCode.INVALID_REQUEST, *REFUSED)
