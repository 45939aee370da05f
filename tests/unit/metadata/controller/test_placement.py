"""Placement of replicas: even, over all racks, never led by a fenced broker."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.nodes.controller_cluster import SeededRandomness

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.metadata.controller.placement import UsableBroker, place_replicas

RACKS = st.sampled_from([None, "a", "b", "c"])
CLUSTERS = st.lists(st.tuples(RACKS, st.booleans()), min_size=1, max_size=8).map(
    lambda each: [UsableBroker(number, rack, fenced) for number, (rack, fenced) in enumerate(each)]
)


@given(CLUSTERS, st.integers(1, 30), st.integers(1, 8), st.integers(0, 99))
def test_replicas_are_different_brokers_and_a_live_one_leads(
    brokers: list[UsableBroker], partitions: int, factor: int, seed: int
) -> None:
    live = {broker.id for broker in brokers if not broker.fenced}
    if factor > len(brokers) or not live:
        with pytest.raises(KafkaError) as error:
            place_replicas(brokers, partitions, factor, SeededRandomness(seed))
        assert error.value.code == ErrorCode.INVALID_REPLICATION_FACTOR
        return
    placed = place_replicas(brokers, partitions, factor, SeededRandomness(seed))
    assert len(placed) == partitions
    for replicas in placed:
        assert len(set(replicas)) == len(replicas) == factor
        assert replicas[0] in live
        assert {broker.id for broker in brokers} >= set(replicas)


@given(st.integers(1, 6), st.integers(0, 99))
def test_leaders_are_spread_evenly(count: int, seed: int) -> None:
    brokers = [UsableBroker(number, None, False) for number in range(count)]
    leaders = Counter(replicas[0] for replicas in place_replicas(brokers, count * 4, 1, SeededRandomness(seed)))
    assert leaders == Counter(dict.fromkeys(range(count), 4))


@given(st.integers(0, 99))
def test_every_rack_has_a_replica(seed: int) -> None:
    brokers = [UsableBroker(number, "abc"[number % 3], False) for number in range(9)]
    placed = place_replicas(brokers, 27, 3, SeededRandomness(seed))
    for replicas in placed:
        assert {brokers[replica].rack for replica in replicas} == {"a", "b", "c"}
    assert Counter(replica for replicas in placed for replica in replicas) == Counter(dict.fromkeys(range(9), 9))


def test_a_replication_factor_of_zero_is_refused() -> None:
    with pytest.raises(KafkaError):
        place_replicas([UsableBroker(1, None, False)], 1, 0, SeededRandomness())


def test_two_topics_do_not_begin_on_the_same_broker() -> None:
    brokers = [UsableBroker(number, None, False) for number in range(5)]
    randomness = SeededRandomness()
    assert len({place_replicas(brokers, 1, 1, randomness)[0][0] for _ in range(40)}) == 5
