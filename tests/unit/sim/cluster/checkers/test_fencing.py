"""Fenced brokers lead nothing, and old broker epochs are refused."""

import pytest

from ottla.ids import Uuid
from ottla.metadata.image.cluster import BrokerRegistration, ClusterImage
from ottla.metadata.image.image import MetadataImage
from ottla.metadata.image.topics import PartitionState, Topic, TopicsImage
from ottla.sim.checkers.checker import Violation
from ottla.sim.cluster.checkers.checker import Answer
from ottla.sim.cluster.checkers.quorum import Fencing
from ottla.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ottla.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

INCARNATION, OTHER, TOPIC = (Uuid(bytes([number]) * 16) for number in (1, 2, 3))


def broker(epoch: int = 5, *, fenced: bool = False, incarnation: Uuid = INCARNATION) -> BrokerRegistration:
    return BrokerRegistration(1, epoch, incarnation, {}, {}, None, fenced, False, ())


def image(*brokers: BrokerRegistration, leader: int = -1) -> MetadataImage:
    topic = Topic("t", TOPIC, {0: PartitionState((1,), (), (1,), leader, 0, 0)})
    return MetadataImage(
        cluster=ClusterImage({each.id: each for each in brokers}), topics=TopicsImage({"t": topic}, {TOPIC: topic})
    )


def test_an_unfenced_broker_may_lead() -> None:
    Fencing().image_committed(MetadataImage(), image(broker(), leader=1))
    Fencing().image_committed(MetadataImage(), image(broker(fenced=True)))


@pytest.mark.parametrize(("brokers", "what"), [([broker(fenced=True)], "is fenced"), ([], "is not registered")])
def test_a_leader_that_may_not_lead_is_found(brokers: list[BrokerRegistration], what: str) -> None:
    with pytest.raises(Violation, match=f"broker 1 leads t-0 at offset -1, and it {what}"):
        Fencing().image_committed(MetadataImage(), image(*brokers, leader=1))


def test_broker_epochs_that_go_back_or_are_shared_are_found() -> None:
    Fencing().image_committed(image(broker(5)), image(broker(6, incarnation=OTHER)))
    with pytest.raises(Violation, match="broker 1 was registered in epoch 5, and then in 4"):
        Fencing().image_committed(image(broker(5)), image(broker(4)))
    with pytest.raises(Violation, match="two processes of broker 1 share epoch 5"):
        Fencing().image_committed(image(broker(5)), image(broker(5, incarnation=OTHER)))


def test_a_request_of_an_older_epoch_that_is_obeyed_is_found() -> None:
    checker = Fencing()
    request, response = BrokerHeartbeatRequest(broker_id=1, broker_epoch=5), BrokerHeartbeatResponse()
    checker.answered("n2", Answer(request, response, [], 5))
    checker.answered("n2", Answer(CreateTopicsRequest(), CreateTopicsResponse(), [], None))
    assert checker.judged == 1
    with pytest.raises(
        Violation, match="n2 has obeyed BrokerHeartbeat of broker 1 in epoch 5, and it is registered in epoch 9"
    ):
        checker.answered("n2", Answer(request, response, [], 9))
