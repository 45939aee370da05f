"""AllocateProducerIds on a controller's listener."""

from tests.support.nodes.deciding_controller import DecidingController

from ottla.errors.codes import ErrorCode
from ottla.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest


def test_each_request_gets_the_next_block() -> None:
    controller = DecidingController()
    request = AllocateProducerIdsRequest(broker_id=3, broker_epoch=controller.cluster.register(3))
    responses = [controller.ask(request) for _ in range(2)]
    assert [(each.producer_id_start, each.producer_id_len) for each in responses] == [(0, 1000), (1000, 1000)]


def test_stale_epoch_gets_no_block() -> None:
    controller = DecidingController()
    response = controller.ask(AllocateProducerIdsRequest(broker_id=3, broker_epoch=controller.cluster.register(3) - 1))
    assert (response.error_code, response.producer_id_len) == (ErrorCode.STALE_BROKER_EPOCH, 0)
    assert controller.cluster.state.image.next_producer_id == 0
