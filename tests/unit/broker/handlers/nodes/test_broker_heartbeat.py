"""BrokerHeartbeat on a controller's listener."""

from tests.support.nodes.deciding_controller import DecidingController

from ottla.errors.codes import ErrorCode
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest


def test_broker_that_has_read_its_registration_is_unfenced() -> None:
    controller = DecidingController()
    epoch = controller.cluster.register(3)
    heartbeat = BrokerHeartbeatRequest(broker_id=3, broker_epoch=epoch, current_metadata_offset=epoch)
    response = controller.ask(heartbeat)
    assert (response.error_code, response.is_caught_up, response.is_fenced) == (ErrorCode.NONE, True, False)
    assert not controller.cluster.state.image.cluster.brokers[3].fenced


def test_heartbeat_with_another_epoch_is_refused() -> None:
    controller = DecidingController()
    epoch = controller.cluster.register(3)
    response = controller.ask(BrokerHeartbeatRequest(broker_id=3, broker_epoch=epoch + 1, current_metadata_offset=epoch))
    assert (response.error_code, response.is_fenced) == (ErrorCode.STALE_BROKER_EPOCH, True)
