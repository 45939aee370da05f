"""UnregisterBroker on a controller's listener."""

from tests.support.nodes.deciding_controller import DecidingController

from ottla.errors.codes import ErrorCode
from ottla.wire.messages.unregister_broker import UnregisterBrokerRequest


def test_registration_is_removed() -> None:
    controller = DecidingController()
    controller.cluster.register(3)
    response = controller.ask(UnregisterBrokerRequest(broker_id=3))
    assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
    assert not controller.cluster.state.image.cluster.brokers


def test_unknown_broker_is_refused_with_a_text() -> None:
    response = DecidingController().ask(UnregisterBrokerRequest(broker_id=3))
    assert response.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    assert "broker 3 is not registered" in response.error_message
