"""PartitionChange: which replicas stay eligible leaders when a reassignment completes."""

from typing import Any

from ottla.ids import DIRECTORY_UNASSIGNED, Uuid
from ottla.metadata.controller.partition_change import PartitionChange
from ottla.metadata.features import DIRECTORIES_FROM
from ottla.metadata.image.topics import PartitionState
from ottla.wire.messages.metadata_records import PartitionChangeRecord

TOPIC_ID = Uuid(b"t" * 16)


def built(partition: PartitionState, isr: list[int], min_isr: int) -> PartitionChangeRecord:
    """The record that gives `partition` this ISR; all brokers are active."""
    change = PartitionChange(partition, lambda _: True, lambda _: DIRECTORY_UNASSIGNED, DIRECTORIES_FROM, min_isr, True)
    change.isr = isr
    record = change.build(TOPIC_ID, 0)
    assert record is not None
    return record


def reassigned(replicas: tuple[int, ...], isr: tuple[int, ...], elr: tuple[int, ...], **more: Any) -> PartitionState:
    return PartitionState(replicas, (DIRECTORY_UNASSIGNED,) * len(replicas), isr, 1, 0, 0, elr=elr, **more)


def test_removed_replica_is_no_eligible_leader() -> None:
    """It deletes its log: added again, it would be elected without records."""
    state = reassigned((1, 2, 3, 5, 4), (1, 2, 4), (3,), adding_replicas=(5,), removing_replicas=(4,))
    record = built(state, [1, 5], min_isr=3)
    assert (record.replicas, record.isr, record.eligible_leader_replicas) == ([1, 2, 3, 5], [1, 5], [2, 3])
    assert record.removing_replicas == []


def test_no_replica_is_left_to_be_eligible_when_all_are_in_sync() -> None:
    """Also with fewer replicas than min.insync.replicas asks for."""
    state = reassigned((1, 2, 3), (1,), (2, 3), removing_replicas=(3,))
    record = built(state, [1, 2], min_isr=3)
    assert (record.replicas, record.isr, record.eligible_leader_replicas) == ([1, 2], [1, 2], [])
