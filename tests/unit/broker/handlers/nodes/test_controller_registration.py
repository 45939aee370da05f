"""ControllerRegistration on a controller's listener."""

from tests.support.nodes.controller_cluster import ControllerCluster
from tests.support.nodes.deciding_controller import DecidingController

from ottla.errors.codes import ErrorCode
from ottla.wire.messages.controller_registration import ControllerRegistrationRequest, Listener

REQUEST = ControllerRegistrationRequest(controller_id=4, listeners=[Listener(name="CONTROLLER", host="four", port=9093)])


def test_endpoints_are_stored() -> None:
    controller = DecidingController()
    response = controller.ask(REQUEST)
    assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
    assert controller.cluster.state.image.cluster.controllers[4].endpoints["CONTROLLER"].host == "four"


def test_old_metadata_version_is_refused_with_a_text() -> None:
    response = DecidingController(ControllerCluster(7)).ask(REQUEST)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert response.error_message
