"""A producer id is asked for until there is one, or until a refusal stays."""

from tests.support.producers.settings import small_settings

from ottla.client_core.producer.idempotence import Idempotence, ProducerIds
from ottla.errors import ClusterAuthorizationError, NetworkError
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.init_producer_id import InitProducerIdResponse


def made() -> tuple[ProducerIds, Idempotence]:
    idempotence = Idempotence(is_transactional=False)
    return ProducerIds(small_settings(), idempotence, lambda below: below // 2), idempotence


def test_the_id_is_taken_over_and_not_asked_for_again() -> None:
    machine, idempotence = made()
    (request,) = machine.step(0)
    assert machine.step(0) == []
    machine.answered(request, InitProducerIdResponse(producer_id=9, producer_epoch=0), 5, 0)
    assert idempotence.producer == (9, 0)
    assert machine.step(0) == []
    assert machine.next_deadline_ms() is None


def test_failures_that_pass_are_retried_after_the_backoff() -> None:
    machine, _ = made()
    (request,) = machine.step(0)
    machine.failed(request, NetworkError("gone"), 0)
    assert machine.step(0) == []
    assert machine.next_deadline_ms() == 100
    (request,) = machine.step(100)
    machine.answered(request, InitProducerIdResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), 5, 100)
    assert machine.next_deadline_ms() == 300


def test_a_refusal_that_stays_is_kept() -> None:
    machine, _ = made()
    (request,) = machine.step(0)
    machine.answered(request, InitProducerIdResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED), 5, 0)
    assert isinstance(machine.error, ClusterAuthorizationError)
    assert machine.step(1_000_000) == []
