"""Schema registries beside each other in the simulator: whatever happens to nodes and registries, no id is given away twice."""

from collections import Counter

import pytest

from ottla.registry.topic import SchemasTopic
from ottla.sim.cluster.run import run_cluster_seed
from ottla.sim.run import RunFailed

SEEDS = 3
LONG_SEEDS = 100
SEEDS_PER_LONG_TEST = 10
REGISTRIES = 3


def run_seeds(first: int, count: int) -> Counter[str]:
    counts: Counter[str] = Counter()
    for seed in range(first, first + count):
        counts.update(run_cluster_seed(seed, replicas=3, registries=REGISTRIES).counts)
    return counts


def test_seeds() -> None:
    counts = run_seeds(0, SEEDS)
    assert counts["schemas"] > 20 * SEEDS
    assert counts["lives"] > 3 * SEEDS


@pytest.mark.slow
@pytest.mark.parametrize("first", range(SEEDS, LONG_SEEDS, SEEDS_PER_LONG_TEST))
def test_many_more_seeds(first: int) -> None:
    run_seeds(first, SEEDS_PER_LONG_TEST)


@pytest.mark.slow
def test_registries_without_the_fence_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checker can fail: registries that append without a sequence number, as producers of their own do, share ids."""
    from ottla.registry import topic

    build = topic.build_produce_batch

    def unfenced(rows: object, **_: object) -> object:
        return build(rows)  # type: ignore[arg-type]

    monkeypatch.setattr(topic, "build_produce_batch", unfenced)
    monkeypatch.setattr(SchemasTopic, "_append", _unchecked(SchemasTopic._append))
    with pytest.raises(RunFailed, match=r"was given to|was answered"):
        run_seeds(0, 6)


def _unchecked(append: object) -> object:
    async def without(self: SchemasTopic, records: object) -> bool:
        await append(self, records)  # type: ignore[operator]
        return True

    return without
