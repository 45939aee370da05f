"""AssignReplicasToDirs on a controller's listener."""

from tests.support.nodes.deciding_controller import DecidingController

from ottla.errors.codes import ErrorCode
from ottla.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest


def test_stale_epoch_is_refused_as_a_whole() -> None:
    controller = DecidingController()
    epoch = controller.cluster.register(3)
    assert controller.ask(AssignReplicasToDirsRequest(broker_id=3, broker_epoch=epoch)).error_code == ErrorCode.NONE
    refused = controller.ask(AssignReplicasToDirsRequest(broker_id=3, broker_epoch=epoch + 1))
    assert refused.error_code == ErrorCode.STALE_BROKER_EPOCH
