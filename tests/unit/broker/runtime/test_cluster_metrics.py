"""The metrics of the cluster, and the count of unclean elections."""

import pytest
from tests.support.nodes.images import broker, image_of, partition

from ottla.broker.runtime.cluster_metrics import ElectionCounter, write_cluster
from ottla.metadata.image.delta import MetadataDelta
from ottla.metadata.image.image import MetadataImage
from ottla.metadata.image.topics import NO_LEADER, PartitionState
from ottla.metrics_text import MetricsText


def samples(image: MetadataImage, has_controller: bool = True) -> dict[str, str]:
    text = MetricsText()
    write_cluster(text, image, True, ElectionCounter(), has_controller)
    lines = [line for line in text.encode().decode().splitlines() if not line.startswith("#")]
    return dict(line.rsplit(" ", 1) for line in lines)


def test_partitions_by_leader_and_brokers_by_state() -> None:
    states = [partition(1, 2), partition(1, 2, leader=2), partition(1, 2, leader=NO_LEADER)]
    found = samples(image_of([broker(1), broker(2, fenced=True)], {"t": states}))
    prefix = "kafka_controller_kafkacontroller_"
    assert found[f"{prefix}offlinepartitionscount"] == "1"
    assert found[f"{prefix}preferredreplicaimbalancecount"] == "2"
    assert (found[f"{prefix}activebrokercount"], found[f"{prefix}fencedbrokercount"]) == ("1", "1")
    assert (found[f"{prefix}globaltopiccount"], found[f"{prefix}globalpartitioncount"]) == ("1", "3")


@pytest.mark.parametrize(
    ("state", "is_healthy"),
    [
        (partition(1, 2), True),
        (partition(1, 2, leader=2), True),
        (partition(1, 2)._replace(isr=(1,)), False),
        (partition(1, 2, leader=NO_LEADER), False),
    ],
    ids=["in sync", "led by another", "out of sync", "without a leader"],
)
def test_cluster_is_healthy_if_all_replicas_are_in_sync(state: PartitionState, is_healthy: bool) -> None:
    assert samples(image_of([], {"t": [partition(1), state]}))["ottla_cluster_healthy"] == str(int(is_healthy))


def test_cluster_without_a_controller_is_not_healthy() -> None:
    image = image_of([], {"t": [partition(1)]})
    assert samples(image)["ottla_cluster_healthy"] == "1"
    assert samples(image, has_controller=False)["ottla_cluster_healthy"] == "0"


@pytest.mark.parametrize(
    ("leader", "elr", "unclean"),
    [(2, (), 0), (3, (), 1), (3, (3,), 0), (NO_LEADER, (), 0), (1, (), 0)],
    ids=["in sync", "out of sync", "eligible", "none", "the same"],
)
def test_unclean_elections_are_counted(leader: int, elr: tuple[int, ...], unclean: int) -> None:
    before = partition(1, 2, 3)._replace(isr=(1, 2), elr=elr)
    after = before._replace(leader=leader, leader_epoch=4, partition_epoch=5)
    base, image = image_of([], {"t": [before, partition(1)]}), image_of([], {"t": [after, partition(1)], "new": [after]})
    counter = ElectionCounter()
    counter.count(MetadataDelta.between(base, image), image)
    assert counter.unclean == unclean
