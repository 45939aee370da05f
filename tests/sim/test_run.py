"""Runs are deterministic: one seed gives one trace, in every process. And runs meet the faults that they should."""

import subprocess
import sys
from collections import Counter

import pytest

from ottla.sim.plan import SCENES, scene_of
from ottla.sim.run import RunFailed, run_seed
from ottla.sim.troubles import Troubles

SEED = 4
SEEDS = tuple(range(SEED, SEED + len(SCENES)))
"""One of each scene."""


def digest_in_process(hash_seed: str, call: str = "run_seed(seed)") -> str:
    """The digest of a run in its own process, with another hash seed and so another order of sets."""
    code = (
        "from ottla.sim.run import run_seed\nfrom ottla.sim.cluster.run import run_cluster_seed\n"
        f"print([{call}.digest for seed in {SEEDS}])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONHASHSEED": hash_seed}, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_one_seed_gives_one_trace() -> None:
    first, again = run_seed(SEED), run_seed(SEED)
    assert first.trace == again.trace
    digests = [run_seed(seed).digest for seed in SEEDS]
    assert digests[0] == first.digest
    assert len(set(digests)) == len(SEEDS)
    texts = {digest_in_process("1"), digest_in_process("2")}
    assert texts == {f"{digests}\n"}


def test_one_seed_gives_one_trace_with_replicas() -> None:
    texts = {digest_in_process(hash_seed, "run_cluster_seed(seed, replicas=3)") for hash_seed in ("1", "2")}
    assert len(texts) == 1


def test_runs_meet_every_kind_of_fault() -> None:
    counts: Counter[str] = Counter()
    for seed in [seed for seed in range(30 * len(SCENES)) if scene_of(seed) == "logs"]:
        counts.update(run_seed(seed).counts)
    expected = ["lives", "power losses", "kills", "crashes", "cuts", "partitions", "failed", "torn", "prefix", "lost"]
    assert [name for name in expected if counts[name] < 3] == []
    assert counts["acknowledged"] > 2_000
    assert counts["consumed"] > 2_000
    assert counts["lost to power"] > 20, "a power loss that loses nothing proves nothing"
    assert counts["kept by flush.ms"] > 20


def test_checkers_of_coordinators_have_enough_to_check() -> None:
    counts: Counter[str] = Counter()
    for seed in [seed for seed in range(12 * len(SCENES)) if scene_of(seed) != "logs"]:
        counts.update(run_seed(seed).counts)
    assert counts["power losses"] > 10
    least = {
        "offsets": 200,
        "offsets gone": 5,
        "generations": 30,
        "handovers": 10,
        "transactions": 100,
        "once": 300,
        "committed": 10,
        "unknown endings": 3,
        "producers": 200,
        "other producers": 3,
    }
    assert {name: counts[name] for name, count in least.items() if counts[name] < count} == {}


def test_a_failure_names_the_command_that_replays_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(troubles: Troubles) -> None:
        raise AssertionError("found out")

    monkeypatch.setattr(Troubles, "run", fail)
    with pytest.raises(RunFailed, match=rf"found out\n.*python -m ottla.sim --seed {SEED} --trace") as failure:
        run_seed(SEED)
    assert any("node" in line and "start" in line for line in failure.value.trace)
