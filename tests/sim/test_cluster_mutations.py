"""The cluster's checkers can fail: each cluster that is broken on purpose is detected within 100 seeds."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from ottla.broker.runtime import snapshot_writer
from ottla.broker.runtime.controller import ControllerRuntime
from ottla.broker.runtime.coordinators.transaction_endings import Endings
from ottla.broker.runtime.metadata_log import MetadataLog
from ottla.errors.codes import ErrorCode
from ottla.metadata.image.image import MetadataImage
from ottla.raft.replica import Replica
from ottla.raft.requests import between_voters, fetch, vote
from ottla.raft.roles.leader import Leader
from ottla.sim.cluster.run import run_cluster_seed
from ottla.sim.plan import SCENES, scene_of
from ottla.sim.run import RunFailed

SEEDS_MAX = 100


def two_votes_in_an_epoch(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Replica, "vote_for", lambda replica, candidate, now_ms: None)


def no_sync_before_a_fetch(patch: pytest.MonkeyPatch) -> None:
    async def sync(log: MetadataLog) -> int:
        return log.partition_log.log_end_offset

    patch.setattr(MetadataLog, "sync", sync)


def epochs_are_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(vote, "refuse_voter_request", lambda replica, sender_id, epoch: None)
    patch.setattr(fetch, "refuse_leader_request", lambda replica, epoch: None if isinstance(replica.role, Leader) else 6)
    for module in (between_voters, fetch):
        patch.setattr(module, "learn_from_answer", lambda replica, error, *leader: None if error == 0 else True)


def active_before_commit(patch: pytest.MonkeyPatch) -> None:
    leader_changed = ControllerRuntime.leader_changed

    def activate_at_once(controller: ControllerRuntime, leader_id: int | None, epoch: int) -> None:
        leader_changed(controller, leader_id, epoch)
        if controller._elected_epoch is not None and controller._quorum.is_leader:
            controller._activate(epoch)

    patch.setattr(ControllerRuntime, "leader_changed", activate_at_once)


def snapshots_skip_a_record(patch: pytest.MonkeyPatch) -> None:
    image_records = snapshot_writer.image_records

    def all_but_one(image: MetadataImage, *more: Any) -> Iterator[Any]:
        records = list(image_records(image, *more))
        yield from records[:-1]

    patch.setattr(snapshot_writer, "image_records", all_but_one)


def markers_go_to_one_node(patch: pytest.MonkeyPatch) -> None:
    begin = Endings.__init__

    def without_others(endings: Endings, node_id: int, metadata: Any, writer: Any, send_to: Any = None) -> None:
        begin(
            endings, node_id, metadata, writer, lambda broker, marker, names, done: done(dict.fromkeys(names, ErrorCode.NONE))
        )

    patch.setattr(Endings, "__init__", without_others)


def a_renounced_controller_answers(patch: pytest.MonkeyPatch) -> None:
    def answer_waiting(controller: ControllerRuntime, refusal: Exception) -> None:
        for _, committed in controller._waiting:
            if not committed.done():
                committed.set_result(None)
        controller._waiting.clear()

    patch.setattr(ControllerRuntime, "_refuse_waiting", answer_waiting)


MUTATIONS = {
    two_votes_in_an_epoch: r"has voted for \d and for \d in epoch|has two leaders",
    no_sync_before_a_fetch: r"and durable is:",
    epochs_are_ignored: r"has voted for|two leaders|was committed|commits|BrokenInvariant|not over within",
    active_before_commit: r"and no batch of that epoch is committed",
    snapshots_skip_a_record: r"than the committed log",
    markers_go_to_one_node: r"some transaction has not ended|has been refused|another time|went back|commit was never|not over",
    a_renounced_controller_answers: r"of it is not committed",
}


def run_seeds(scenes: Sequence[str]) -> None:
    for seed in range(SEEDS_MAX):
        if scene_of(seed) in scenes:
            run_cluster_seed(seed)


@pytest.mark.slow
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_broken_cluster_is_detected(mutation: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    mutation(monkeypatch)
    with pytest.raises(RunFailed, match=MUTATIONS[mutation]):
        run_seeds(("transactions",) if mutation is markers_go_to_one_node else SCENES)
