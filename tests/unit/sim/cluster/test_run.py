"""A whole run with several nodes: deterministic, and a failure can be replayed and read."""

import pytest

from ottla.sim.cluster.run import run_cluster_seed
from ottla.sim.cluster.troubles import ClusterTroubles
from ottla.sim.run import RunFailed

SEED = 0


@pytest.mark.slow
def test_a_seed_gives_one_run() -> None:
    first, second = run_cluster_seed(SEED), run_cluster_seed(SEED)
    assert first.trace == second.trace
    assert first.digest == second.digest
    assert first.counts["acknowledged"] > 0
    assert first.counts["epochs"] > 0


def test_a_failure_names_the_command_that_replays_it_and_shows_a_timeline(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(troubles: ClusterTroubles) -> None:
        raise AssertionError("found out")

    monkeypatch.setattr(ClusterTroubles, "run", fail)
    replay = rf"found out\n.*python -m ottla.sim --nodes 3 --seed {SEED} --trace"
    text = replay + r"\n +time  n1  n2  n3\n(.*\n)*.* C .*active controller"
    with pytest.raises(RunFailed, match=text):
        run_cluster_seed(SEED)
