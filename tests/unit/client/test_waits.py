"""Which requests have no answer yet."""

import pytest

from ottla.client.waits import Waits
from ottla.client_core.machine import ANY_NODE, CONTROLLER
from ottla.errors import KafkaError, NetworkError
from ottla.errors.codes import ErrorCode
from ottla.wire.api_table import ApiKey


def fail(waits: Waits, node_id: int, key: int, now_s: float, error: BaseException) -> None:
    with pytest.raises(type(error)), waits.asking(node_id, key, now_s):
        raise error


def test_request_waits_from_its_first_attempt_until_its_answer() -> None:
    waits = Waits()
    fail(waits, 2, ApiKey.LIST_GROUPS, 1.0, NetworkError("refused"))
    wait = waits.oldest(1.5)
    assert wait is not None
    assert (wait.node_id, wait.api, wait.since_s, str(wait.reason)) == (2, "ListGroups", 1.0, "refused")
    with waits.asking(2, ApiKey.LIST_GROUPS, 2.0):
        with waits.asking(ANY_NODE, ApiKey.METADATA, 2.0):
            pass
        again = waits.oldest(2.5)
        assert again == wait
    assert waits.oldest(3.0) is None


@pytest.mark.parametrize("error", [KafkaError(ErrorCode.UNSUPPORTED_VERSION, "no"), TimeoutError()])
def test_request_that_is_not_asked_again_does_not_wait(error: BaseException) -> None:
    waits = Waits()
    fail(waits, 2, ApiKey.LIST_GROUPS, 1.0, error)
    assert waits.oldest(1.0) is None


def test_answer_of_another_node_ends_a_wait_but_finding_nodes_does_not() -> None:
    waits = Waits()
    fail(waits, 2, ApiKey.LIST_OFFSETS, 1.0, NetworkError("refused"))
    with waits.asking(ANY_NODE, ApiKey.METADATA, 2.0):
        pass
    assert waits.oldest(2.0) is not None
    with waits.asking(1, ApiKey.LIST_OFFSETS, 3.0):
        pass
    assert waits.oldest(3.0) is None


def test_attempts_that_are_repeated_soon_are_one_wait() -> None:
    waits, error = Waits(), KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, "partition t-0 has no leader")
    waits.repeated(error, 1.0)
    waits.repeated(error, 3.0)
    wait = waits.oldest(4.0)
    assert wait is not None
    assert (wait.since_s, wait.api, wait.reason) == (1.0, "", error)
    assert waits.oldest(6.0) is None, "it is not repeated any more"
    waits.repeated(error, 7.0)
    wait = waits.oldest(7.0)
    assert wait is not None
    assert wait.since_s == 7.0


@pytest.mark.parametrize(
    ("node_id", "key", "is_for_controller"),
    [(CONTROLLER, ApiKey.CREATE_TOPICS, True), (ANY_NODE, ApiKey.DESCRIBE_QUORUM, True), (2, ApiKey.LIST_GROUPS, False)],
)
def test_controller_is_waited_for_through_brokers(node_id: int, key: int, is_for_controller: bool) -> None:
    waits = Waits()
    with waits.asking(node_id, key, 1.0):
        wait = waits.oldest(1.0)
        assert wait is not None
        assert wait.is_for_controller == is_for_controller
