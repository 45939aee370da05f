"""What checkers get to see of running nodes, and how a failed run is told."""

from collections.abc import Sequence
from typing import Any

import pytest

from ottla.metadata.image.image import MetadataImage
from ottla.sim.checkers.checker import Violation
from ottla.sim.cluster.checkers.checker import Answer, ClusterChecker, HeldPartition, Logged
from ottla.sim.cluster.checkers.partitions import PartitionStates
from ottla.sim.cluster.run import run_cluster_seed
from ottla.sim.cluster.troubles import ClusterTroubles
from ottla.sim.run import RunFailed
from ottla.wire.messages.broker_registration import BrokerRegistrationRequest


class Noting(ClusterChecker):
    """Keeps every event."""

    def __init__(self) -> None:
        self.votes: dict[tuple[str, int], int] = {}
        self.leaders: dict[int, str] = {}
        self.ends: dict[str, int] = {}
        self.images: dict[str, MetadataImage] = {}
        self.active: dict[int, str] = {}
        self.answers: list[Answer] = []
        self.appended_by: dict[int, str] = {}

    def voted(self, node: str, epoch: int, candidate_id: int) -> None:
        self.votes[node, epoch] = candidate_id

    def led(self, node: str, epoch: int, log: Sequence[Logged]) -> None:
        self.leaders[epoch] = node
        assert log[-1].entry.epoch == epoch

    def committed(self, node: str, epoch: int, is_leader: bool, offset: int, batches: Sequence[Logged]) -> None:
        assert not batches or batches[0].entry.base_offset == self.ends.get(node, 0)
        self.ends[node] = offset

    def published(self, node: str, image: MetadataImage) -> None:
        self.images[node] = image

    def activated(self, node: str, epoch: int) -> None:
        self.active[epoch] = node

    def appended(self, node: str, offset: int, image: MetadataImage) -> None:
        assert image.provenance.offset == offset >= max(self.ends.values())
        self.appended_by[offset] = node

    def answered(self, node: str, answer: Answer) -> None:
        self.answers.append(answer)


def test_checkers_see_votes_commits_images_and_answers(on_nodes: Any) -> None:
    noting = Noting()

    async def body(nodes: Any) -> None:
        await nodes.start()
        await nodes.until(lambda: len(noting.images) == 3)
        epoch = max(noting.leaders)
        leader = noting.leaders[epoch]
        assert noting.active[epoch] == leader
        assert list(noting.votes.values()).count(int(leader[1:])) >= 2
        assert set(noting.ends) == {"n1", "n2", "n3"}
        registrations = [each for each in noting.answers if isinstance(each.request, BrokerRegistrationRequest)]
        assert len(registrations) >= 3
        assert all(len(each.entries) == 1 for each in registrations)
        assert {noting.appended_by[each.entries[0].last_offset] for each in registrations} == {leader}

    on_nodes(body, noting)


def test_a_violation_does_not_stop_the_node(on_nodes: Any) -> None:
    class Strict(ClusterChecker):
        def published(self, node: str, image: MetadataImage) -> None:
            raise Violation(f"{node} publishes")

    async def body(nodes: Any) -> None:
        await nodes.start()
        with pytest.raises(Violation, match=r"n. publishes"):
            nodes.watch.violation.result()

    on_nodes(body, Strict())


SEED = 3
"""A run in which replicas join ISRs."""


def test_a_violation_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def object_to(checker: PartitionStates, node: str, held: HeldPartition) -> None:
        raise Violation("found out")

    monkeypatch.setattr(PartitionStates, "partition_held", object_to)
    with pytest.raises(RunFailed, match="found out"):
        run_cluster_seed(SEED, replicas=3)


def test_a_leader_tells_of_its_high_watermark_before_it_is_killed() -> None:
    # A leader without followers answers, and is killed before its next turn, in which it would have told.
    run_cluster_seed(4164, replicas=1)


RUN_SEED = 0


@pytest.mark.slow
def test_a_seed_gives_one_run() -> None:
    first, second = run_cluster_seed(RUN_SEED), run_cluster_seed(RUN_SEED)
    assert first.trace == second.trace
    assert first.digest == second.digest
    assert first.counts["acknowledged"] > 0
    assert first.counts["epochs"] > 0


def test_a_failure_names_the_command_that_replays_it_and_shows_a_timeline(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(troubles: ClusterTroubles) -> None:
        raise AssertionError("found out")

    monkeypatch.setattr(ClusterTroubles, "run", fail)
    replay = rf"found out\n.*python -m ottla.sim --nodes 3 --seed {RUN_SEED} --trace"
    text = replay + r"\n +time  n1  n2  n3\n(.*\n)*.* C .*active controller"
    with pytest.raises(RunFailed, match=text):
        run_cluster_seed(RUN_SEED)
