"""Schema registries beside each other in the simulator: whatever happens to nodes and registries, no id is given away twice."""

from collections import Counter

import pytest

from ottla.errors import KafkaError
from ottla.records.builder import build_produce_batch
from ottla.registry.errors import RegistryError
from ottla.registry.topic import Records, SchemasTopic
from ottla.sim.cluster.run import run_cluster_seed
from ottla.sim.run import RunFailed

SEEDS = 2
FOUND = {"a_sequence_number_of_a_batch_that_cannot_be_read_yet": 13}
"""Seeds that have failed, by what they found."""
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


@pytest.mark.parametrize("seed", FOUND.values(), ids=FOUND.keys())
def test_seeds_that_once_failed(seed: int) -> None:
    run_seeds(seed, 1)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(SEEDS, LONG_SEEDS, SEEDS_PER_LONG_TEST))
def test_many_more_seeds(first: int) -> None:
    run_seeds(first, SEEDS_PER_LONG_TEST)


@pytest.mark.slow
def test_registries_without_the_fence_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checker can fail: registries that write with no sequence number, and trust the answer, give ids away twice."""

    async def unfenced(self: SchemasTopic, records: Records) -> bool:
        rows = [(self._writing.world.clock.now_ms(), key, value, ()) for key, value in records]
        try:
            offset = await self._produce(bytes(build_produce_batch(rows)))
        except KafkaError as problem:
            raise RegistryError(500, 50001, str(problem)) from None
        await self._read_until(offset + len(records))
        return True

    monkeypatch.setattr(SchemasTopic, "_append", unfenced)
    with pytest.raises(RunFailed, match=r"was given to|was answered|has the ids"):
        run_seeds(0, 10)
