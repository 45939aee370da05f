"""AlterPartition on a controller's listener."""

from tests.support.nodes.deciding_controller import DecidingController

from ottla.errors.codes import ErrorCode
from ottla.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    BrokerState,
)


def test_both_versions_are_answered_and_a_stale_epoch_is_refused_as_a_whole() -> None:
    controller = DecidingController()
    cluster = controller.cluster
    for broker_id in (1, 2):
        cluster.add_broker(broker_id)
    cluster.create_topic("t", assignments=[[1, 2]])
    epoch = cluster.state.image.cluster.brokers[1].epoch

    def request(broker_epoch: int, **isr: object) -> AlterPartitionRequest:
        proposal = AlterPartitionRequestPartitionData(partition_epoch=cluster.partition("t").partition_epoch, **isr)  # type: ignore[arg-type]
        topic = AlterPartitionRequestTopicData(topic_id=cluster.topic("t").id, partitions=[proposal])
        return AlterPartitionRequest(broker_id=1, broker_epoch=broker_epoch, topics=[topic])

    assert controller.ask(request(epoch + 1)).error_code == ErrorCode.STALE_BROKER_EPOCH
    shrunk = controller.ask(request(epoch, new_isr=[1]), 2)
    assert (shrunk.error_code, shrunk.topics[0].partitions[0].isr) == (ErrorCode.NONE, [1])
    grown = controller.ask(request(epoch, new_isr_with_epochs=[BrokerState(broker_id=1), BrokerState(broker_id=2)]), 3)
    assert (grown.error_code, grown.topics[0].partitions[0].isr) == (ErrorCode.NONE, [1, 2])
    assert cluster.partition("t").isr == (1, 2)
