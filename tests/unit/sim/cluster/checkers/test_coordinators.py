"""The coordinator of a group is the last leader of its partition of __consumer_offsets, by the committed metadata."""

from types import MappingProxyType

from tests.support.nodes.watched_partitions import TOPIC_ID, state

from ottla.coordinator.placement import partition_for
from ottla.ids import OFFSETS_TOPIC
from ottla.metadata.image.image import MetadataImage
from ottla.metadata.image.topics import NO_LEADER, Topic, TopicsImage
from ottla.sim.cluster.checkers.partitions import Coordinators

GROUP, OTHER = "a", "b"


def led_by(node: int) -> MetadataImage:
    """The partition of `GROUP` is led by `node`, that of `OTHER` by 3."""
    leaders = {partition_for(GROUP, 2): node, partition_for(OTHER, 2): 3}
    topic = Topic(OFFSETS_TOPIC, TOPIC_ID, {number: state(leader=leader) for number, leader in leaders.items()})
    return MetadataImage(topics=TopicsImage(MappingProxyType({OFFSETS_TOPIC: topic})))


class Cluster:
    """Coordinators that are told the leader of `GROUP` at a time."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.coordinators = Coordinators(lambda: self.now_s)
        self._image = MetadataImage()

    def lead(self, node: int, at_s: float) -> None:
        before, self.now_s, self._image = self._image, at_s, led_by(node)
        self.coordinators.image_committed(before, self._image)


def test_a_deposed_leader_is_no_coordinator() -> None:
    cluster = Cluster()
    cluster.lead(2, at_s=1.0)
    assert cluster.coordinators.is_coordinator(GROUP, 2, 0.5), "asked before the topic was made, and nobody led before"
    cluster.lead(1, at_s=2.0)
    assert not cluster.coordinators.is_coordinator(GROUP, 2, 2.5)
    assert cluster.coordinators.is_coordinator(GROUP, 1, 2.5)
    assert cluster.coordinators.is_coordinator(OTHER, 3, 1.5)


def test_one_that_leads_again_may_have_answered_while_another_led() -> None:
    cluster = Cluster()
    for node, at_s in ((2, 1.0), (1, 2.0), (2, 3.0)):
        cluster.lead(node, at_s)
    assert not cluster.coordinators.is_coordinator(GROUP, 2, 2.5)
    assert cluster.coordinators.is_coordinator(GROUP, 2, 3.0)


def test_the_last_leader_stays_the_coordinator_while_there_is_none() -> None:
    cluster = Cluster()
    for node, at_s in ((2, 1.0), (NO_LEADER, 2.0), (2, 3.0)):
        cluster.lead(node, at_s)
        assert cluster.coordinators.is_coordinator(GROUP, 2, 1.0)
