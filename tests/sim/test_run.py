"""Runs are deterministic: one seed gives one trace, in every process."""

import subprocess
import sys
from collections.abc import Sequence

import pytest

from ottla.sim.cluster.run import run_cluster_seed
from ottla.sim.plan import SCENES
from ottla.sim.run import RunFailed, Troubles, run_seed

SEED = 4
SEEDS = tuple(range(SEED, SEED + len(SCENES)))
"""One of each scene."""


def digests_in_process(hash_seed: str, seeds: Sequence[int], call: str = "run_seed(seed)") -> list[str]:
    """The digests of runs in their own process, with another hash seed and so another order of sets."""
    code = (
        "from ottla.sim.run import run_seed\nfrom ottla.sim.cluster.run import run_cluster_seed\n"
        f"for seed in {seeds}: print({call}.digest)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONHASHSEED": hash_seed}, capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_one_seed_gives_one_trace() -> None:
    first = run_seed(SEED)
    digests = [run_seed(seed).digest for seed in SEEDS]
    assert digests[0] == first.digest
    assert len(set(digests)) == len(SEEDS)
    assert digests_in_process("1", SEEDS) == digests


@pytest.mark.slow
def test_one_seed_gives_one_trace_with_replicas() -> None:
    digests = [run_cluster_seed(seed, replicas=3).digest for seed in SEEDS]
    assert digests_in_process("1", SEEDS, "run_cluster_seed(seed, replicas=3)") == digests


def test_a_failure_names_the_command_that_replays_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(troubles: Troubles) -> None:
        raise AssertionError("found out")

    monkeypatch.setattr(Troubles, "run", fail)
    with pytest.raises(RunFailed, match=rf"found out\n.*python -m ottla.sim --seed {SEED} --trace") as failure:
        run_seed(SEED)
    assert any("node" in line and "start" in line for line in failure.value.trace)
