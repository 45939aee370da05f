"""The checkers can fail: each node that is broken on purpose is detected within a few seeds."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ottla.broker.partitions.partition import Partition
from ottla.broker.runtime.metadata_log import MetadataLog
from ottla.broker.runtime.producer_ids import ProducerIds
from ottla.log import partition_log
from ottla.log.directories.upkeep import Upkeep
from ottla.log.producers.producer_state import ProducerState
from ottla.log.recovery import log_loader
from ottla.sim import run
from ottla.sim.machine import Machine
from ottla.sim.plan import SCENES, scene_of
from ottla.sim.run import RunFailed, run_seed

SEEDS_MAX = 60


def metadata_is_not_synced(patch: pytest.MonkeyPatch) -> None:
    async def sync(log: MetadataLog) -> int:
        return log.partition_log.log_end_offset

    patch.setattr(MetadataLog, "sync", sync)
    # Clients wait for topics that are gone for good. A run takes 5 s of virtual time, and the limit of 900 s minutes to reach.
    patch.setattr(run, "TIME_LIMIT_S", 60.0)


def flushes_sync_nothing(patch: pytest.MonkeyPatch) -> None:
    async def sync_all(log: object, target: int) -> None:
        return

    patch.setattr(partition_log, "_sync_all", sync_all)


def nothing_is_flushed_in_time(patch: pytest.MonkeyPatch) -> None:
    async def flush_due(upkeep: Upkeep) -> None:
        return

    patch.setattr(Upkeep, "flush_due", flush_due)


def acknowledged_before_flushed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Partition, "_flush_up_to", lambda partition, offset: None)
    patch.setattr(Partition, "is_acknowledged", lambda partition, info, acks: True)


def starts_forget_producers(patch: pytest.MonkeyPatch) -> None:
    async def rebuild(*found: object, partition: str, end_offset: int, **more: object) -> ProducerState:
        state = ProducerState(partition)
        state.reset(end_offset)
        return state

    patch.setattr(log_loader, "rebuild_producers", rebuild)
    patch.setattr(log_loader, "replay_batch", lambda state, view: [])


def recovery_cuts_too_much(patch: pytest.MonkeyPatch) -> None:
    checked_batches: Callable[..., Iterator[Any]] = log_loader.checked_batches

    def all_but_the_last(*where: Any) -> Iterator[Any]:
        yield from list(checked_batches(*where))[:-1]

    patch.setattr(log_loader, "checked_batches", all_but_the_last)


def appends_stay_in_the_process(patch: pytest.MonkeyPatch) -> None:
    """Unsynced bytes are lost with the process, as if the node buffered its writes."""

    def kill(machine: Machine) -> None:
        machine._end()
        machine.disk = machine.disk.crash(power_loss=True)

    patch.setattr(Machine, "kill", kill)


def producer_ids_begin_anew(patch: pytest.MonkeyPatch) -> None:
    async def request_block(ids: ProducerIds) -> None:
        ids._renewal = None
        ids._later.append(range(1000))

    patch.setattr(ProducerIds, "_request_block", request_block)


MUTATIONS = {
    metadata_is_not_synced: r"there should be|was committed up to|given to two|was configured|gave up|was made|OutOfTime",
    flushes_sync_nothing: r"acknowledged or seen are not there|flush.ms had long been over",
    nothing_is_flushed_in_time: r"with the power, though flush.ms had long been over",
    acknowledged_before_flushed: r"acknowledged or seen are not there",
    starts_forget_producers: r"of the idempotent p\d comes after|got [A-Z_]+",
    recovery_cuts_too_much: r"Violation",
    appends_stay_in_the_process: r"Violation",
    producer_ids_begin_anew: r"was given to two producers",
}


def run_seeds(scene: str, count: int) -> None:
    for seed in [seed for seed in range(count * len(SCENES)) if scene_of(seed) == scene]:
        run_seed(seed)


LATE = (metadata_is_not_synced, producer_ids_begin_anew)
"""Detected only after many seeds, so slow."""


@pytest.mark.parametrize(
    "mutation",
    [pytest.param(each, marks=pytest.mark.slow if each in LATE else (), id=each.__name__) for each in MUTATIONS],
)
def test_a_broken_node_is_detected(mutation: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    with pytest.raises(RunFailed, match=MUTATIONS[mutation]):
        run_seeds("logs", SEEDS_MAX)
