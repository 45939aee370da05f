"""Nodes may end as long as a replica that could lead keeps the acknowledged records."""

import pytest
from tests.support.nodes.watched_partitions import image, state

from ottla.metadata.image.image import MetadataImage, Provenance
from ottla.metadata.image.topics import PartitionState
from ottla.sim.cluster.disks import Safekeeping

EPOCHS = {1: 10, 2: 20, 3: 30}


def keeping(partition: PartitionState, epochs: dict[int, int] | None = None) -> Safekeeping:
    found = Safekeeping()
    found.image_committed(MetadataImage(), image(partition, epochs or EPOCHS))
    return found


@pytest.mark.parametrize(
    ("partition", "ending", "loses_writes", "may"),
    [
        (state((1, 2)), {1}, True, True),
        (state((1, 2)), {3}, True, True),
        (state((1, 2)), {1, 2}, True, False),
        (state((1, 2)), {1, 2, 3}, False, True),
        (state((1,)), {1}, True, False),
        (state((1,), elr=(2,)), {1}, True, True),
        (state((), elr=(), last_known_elr=(3,)), {3}, True, False),
        (state((), elr=(2,), last_known_elr=(3,)), {2}, False, False),
        (state((), elr=(2, 3), last_known_elr=(3,)), {2, 3}, False, True),
    ],
)
def test_one_of_those_that_could_lead_stays(partition: PartitionState, ending: set[int], loses_writes: bool, may: bool) -> None:
    assert keeping(partition).may_end(ending, loses_writes) is may


def test_an_unclean_end_counts_until_the_broker_is_registered_again() -> None:
    found = keeping(state((1, 2)))
    found.note_end(1, loses_writes=True)
    assert not found.may_end({2}, loses_writes=True)
    assert not found.may_end({2}, loses_writes=False), "the controller could not tell which of them has the records"
    found.image_committed(MetadataImage(), image(state((2,), elr=(1,)), EPOCHS | {1: 11}))
    assert found.may_end({2}, loses_writes=True)


def test_killed_brokers_may_all_end() -> None:
    found = keeping(state((1, 2)))
    found.note_end(1, loses_writes=False)
    assert found.may_end({2}, loses_writes=False)
    assert not found.may_end({2}, loses_writes=True)


def test_a_decision_that_is_not_committed_yet_counts() -> None:
    found = keeping(state((1, 2)))
    assert found.may_end({1}, loses_writes=True)
    found.appended("n1", 7, image(state((1,)), EPOCHS))
    assert not found.may_end({1}, loses_writes=True)
    committed = image(state((1, 2)), EPOCHS)
    found.image_committed(MetadataImage(), committed._replace(provenance=Provenance(6, 2, 0)))
    assert not found.may_end({1}, loses_writes=True)
    found.image_committed(MetadataImage(), committed._replace(provenance=Provenance(7, 2, 0)))
    assert found.may_end({1}, loses_writes=True), "another change has its place in the log"


def test_a_broker_that_shuts_down_leaves_the_isr_to_the_others() -> None:
    found = keeping(state((1, 2, 3)))
    with found.stopping(3):
        assert found.may_end({1}, loses_writes=True)
        found.note_end(1, loses_writes=True)
        assert not found.may_end({2}, loses_writes=True)
    assert found.may_end({2}, loses_writes=True), "it has stopped, and is still in the ISR: it has the records"
    found.note_end(2, loses_writes=True)
    assert not found.may_end({3}, loses_writes=False)
