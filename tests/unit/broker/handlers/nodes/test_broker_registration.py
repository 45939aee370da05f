"""BrokerRegistration on a controller's listener."""

from tests.support.nodes.deciding_controller import DecidingController

from ottla.errors.codes import ErrorCode


def test_registered_broker_gets_its_epoch() -> None:
    controller = DecidingController()
    response = controller.ask(controller.cluster.registration(3))
    assert response.error_code == ErrorCode.NONE
    assert response.broker_epoch == controller.cluster.state.image.cluster.brokers[3].epoch


def test_broker_of_another_cluster_is_refused() -> None:
    controller = DecidingController()
    response = controller.ask(controller.cluster.registration(3, cluster_id="another"))
    assert (response.error_code, response.broker_epoch) == (ErrorCode.INCONSISTENT_CLUSTER_ID, -1)
    assert not controller.cluster.state.image.cluster.brokers
