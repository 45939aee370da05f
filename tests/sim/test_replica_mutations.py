"""Checkers of replicated partitions can fail: each broken kind of replication is detected within 100 seeds."""

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest

from ottla.broker.partitions.in_sync import NO_BROKER_EPOCH, InSyncReplicas, RemoteReplica
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.runtime.coordinators import hosted_shard
from ottla.broker.runtime.coordinators.hosted_shard import HostedShard
from ottla.metadata.controller import alter_partition
from ottla.metadata.controller.partition_change import PartitionChange
from ottla.sim.cluster.run import run_cluster_seed
from ottla.sim.run import RunFailed

SEEDS_MAX = 100


def acknowledged_before_replication(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(InSyncReplicas, "awaited", lambda *_: ())


def older_partition_epochs_are_adopted(patch: pytest.MonkeyPatch) -> None:
    adopt, decided = Partition.adopt, Partition.isr_decided

    def adopt_any(partition: Partition, state: Any, may_lead: bool) -> None:
        partition.partition_epoch = min(partition.partition_epoch, state.partition_epoch - 1)
        adopt(partition, state, may_lead)

    def decide_any(partition: Partition, isr: tuple[int, ...], leader_epoch: int, partition_epoch: int) -> None:
        partition.partition_epoch = min(partition.partition_epoch, partition_epoch - 1)
        decided(partition, isr, leader_epoch, partition_epoch)

    patch.setattr(Partition, "adopt", adopt_any)
    patch.setattr(Partition, "isr_decided", decide_any)


def high_watermark_waits_for_the_known_isr_alone(patch: pytest.MonkeyPatch) -> None:
    """Neither for replicas of a pending change nor for those that may join."""
    patch.setattr(
        InSyncReplicas, "awaited", lambda replicas, *_: tuple(each for each in replicas.remote if each in replicas.isr)
    )


def unclean_replicas_stay_eligible(patch: pytest.MonkeyPatch) -> None:
    fill = PartitionChange._fill_elr

    def fill_with_unclean(change: PartitionChange) -> None:
        change.unclean_shutdown_replicas = ()
        fill(change)

    patch.setattr(PartitionChange, "_fill_elr", fill_with_unclean)


def truncation_is_skipped(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Partition, "diverging_epoch", lambda partition, epoch, offset: None)


def caught_up_time_is_not_refreshed(patch: pytest.MonkeyPatch) -> None:
    """It stays what it was when the leader began, whatever the replica fetches."""
    patch.setattr(RemoteReplica, "caught_up_at", lambda *_: None)
    patch.setattr(RemoteReplica, "rest_in", lambda *_: None)


def stale_broker_epochs_join_the_isr(patch: pytest.MonkeyPatch) -> None:
    may_be_in_sync = alter_partition._may_be_in_sync
    is_eligible = Partitions.is_eligible
    patch.setattr(alter_partition, "_may_be_in_sync", lambda state, broker, _: may_be_in_sync(state, broker, -1))
    patch.setattr(Partitions, "is_eligible", lambda here, replica, _: is_eligible(here, replica, NO_BROKER_EPOCH))
    patch.setattr(InSyncReplicas, "is_stale", lambda *_: False)


def reassigned_replicas_count_as_in_sync(patch: pytest.MonkeyPatch) -> None:
    """A reassignment is complete as soon as it is asked for: the old replicas go, and the new ones are in the ISR."""
    complete = PartitionChange._complete_reassignment

    def complete_at_once(change: PartitionChange) -> None:
        change.isr += [replica for replica in change.adding if replica not in change.isr]
        complete(change)

    patch.setattr(PartitionChange, "_complete_reassignment", complete_at_once)


def late_changes_of_groups_are_acknowledged(patch: pytest.MonkeyPatch) -> None:
    def answer_late(hosted: HostedShard[Any]) -> None:
        hosted._commit_timer = None
        waiting, hosted._waiting = hosted._waiting, deque()
        for _, _, answers in waiting:
            for reply, response in answers:
                hosted_shard._deliver(reply, response)

    patch.setattr(HostedShard, "_commit_is_late", answer_late)


MUTATIONS = {
    late_changes_of_groups_are_acknowledged: r"has no offset|went back|was in (generation|epoch)|were given|was answered with",
    acknowledged_before_replication: r"in the ISR of .* ends at",
    older_partition_epochs_are_adopted: r"went back from partition epoch",
    high_watermark_waits_for_the_known_isr_alone: r"in the ISR of .* ends at",
    unclean_replicas_stay_eligible: r"ends at|is committed there",
    truncation_is_skipped: r"is committed there|ends at|these still wait",  # or the follower never catches up again
    caught_up_time_is_not_refreshed: r"wants to drop .* although the high watermark",
    reassigned_replicas_count_as_in_sync: r"in the ISR of .* ends at",
    stale_broker_epochs_join_the_isr: r"into an ISR with broker epoch|ends at|is committed there",
}


def run_seeds() -> None:
    for seed in range(SEEDS_MAX):
        run_cluster_seed(seed, replicas=3)


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_broken_replication_is_detected(
    mutation: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutation(monkeypatch)
    with pytest.raises(RunFailed, match=MUTATIONS[mutation]):
        run_seeds()
