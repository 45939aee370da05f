"""Partitioners: random partitions that adapt to the load, turns, and callables of the user's."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases.golden import read_golden

from ottla.client_core.producer.partitioners import (
    CallablePartitioner,
    DefaultPartitioner,
    RoundRobinPartitioner,
    TopicState,
    resolve_partitioner,
    running_sums,
)
from ottla.errors import ConfigError

LOADS = read_golden("clients/loads.jsonl.gz")


def in_order(numbers: Sequence[int]) -> Callable[[int], int]:
    """Randomness that gives these numbers, one after another."""
    left = iter(numbers)

    def random_below(bound: int) -> int:
        number = next(left)
        assert 0 <= number < bound
        return number

    return random_below


def never(bound: int) -> int:
    raise AssertionError("nothing here is random")


def topic_of(count: int, available: Sequence[int] | None = None) -> TopicState:
    return TopicState("t", count, range(count) if available is None else available)


def resolved(chosen: object) -> Any:
    return resolve_partitioner(chosen, never, is_adaptive=True, availability_timeout_ms=0)


# Random


def test_only_available_partitions_are_chosen_where_there_are_any() -> None:
    assert DefaultPartitioner(in_order([1])).next_partitions(topic_of(9, [4, 7])) == [7]
    assert DefaultPartitioner(in_order([8])).next_partitions(topic_of(9, [])) == [8]


def test_partitions_drawn_together_are_the_digits_of_one_random_number() -> None:
    assert DefaultPartitioner(in_order([2 + 0 * 3 + 1 * 9])).next_partitions(topic_of(3), 3) == [2, 0, 1]


@given(st.integers(1, 7), st.integers(1, 4))
def test_partitions_drawn_together_are_as_likely_as_drawn_alone(count: int, number: int) -> None:
    every = [
        tuple(DefaultPartitioner(in_order([each])).next_partitions(topic_of(count), number)) for each in range(count**number)
    ]
    assert len(set(every)) == count**number


# Load


def test_weights_are_those_of_apache_kafka() -> None:
    assert {row["sums"] is None for row in LOADS} == {True, False}
    for row in LOADS:
        sizes, available = row["sizes"], row["available"]
        assert running_sums(sizes[:available], len(sizes)) == row["sums"], row


def observe(
    partitioner: DefaultPartitioner, topic: TopicState, lengths: Sequence[int], leaders: Sequence[int] | None = None
) -> None:
    partitioner.observe(topic, lengths, leaders or [100 + partition for partition in range(topic.count)])


def test_shorter_queue_is_chosen_more_often() -> None:
    partitioner = DefaultPartitioner(in_order(range(8)))
    topic = topic_of(3)
    observe(partitioner, topic, [0, 3, 1])
    assert Counter(partitioner.next_partitions(topic)[0] for _ in range(8)) == {0: 4, 1: 1, 2: 3}


def test_partition_without_a_leader_is_left_out() -> None:
    partitioner = DefaultPartitioner(in_order(range(5)))
    topic = topic_of(3)
    observe(partitioner, topic, [0, 3, 0], [0, 101, -1])
    assert Counter(partitioner.next_partitions(topic)[0] for _ in range(5)) == {0: 4, 1: 1}


def test_weights_wait_until_every_partition_has_a_queue() -> None:
    partitioner = DefaultPartitioner(in_order([2]))
    topic = topic_of(3)
    observe(partitioner, topic, [0, 3])
    assert topic.sums is None
    assert partitioner.next_partitions(topic) == [2]


def test_weights_are_dropped_when_partitions_are_added() -> None:
    partitioner = DefaultPartitioner(never)
    topic = topic_of(3)
    observe(partitioner, topic, [0, 3, 1])
    topic.update(3, [0, 1])
    assert topic.sums == [4, 5, 8]
    topic.update(4, range(4))
    assert topic.sums is None


def test_queues_change_nothing_unless_adaptive() -> None:
    topic = topic_of(3)
    observe(DefaultPartitioner(never, is_adaptive=False), topic, [0, 3, 1])
    assert topic.sums is None


def test_node_that_takes_no_requests_is_left_out_until_it_does() -> None:
    partitioner = DefaultPartitioner(never, availability_timeout_ms=100)
    topic = topic_of(2)

    def weighed() -> Sequence[int]:
        observe(partitioner, topic, [1, 1], [7, 8])
        return list(topic.weighed) if topic.sums is not None else [0, 1]

    partitioner.node_tried(7, 1_000, can_send=False)
    assert weighed() == [0, 1]
    partitioner.node_tried(7, 1_100, can_send=False)
    assert weighed() == [0, 1]
    partitioner.node_tried(7, 1_101, can_send=False)
    assert weighed() == [1]
    assert topic.sums == [1]
    partitioner.node_tried(7, 1_200, can_send=True)
    assert weighed() == [0, 1]


def test_slow_node_is_chosen_if_all_are_slow_or_nothing_waits_for_it() -> None:
    partitioner = DefaultPartitioner(in_order([1]), availability_timeout_ms=100)
    topic = topic_of(2)
    for node in (7, 8):
        partitioner.node_tried(node, 0, can_send=True)
        partitioner.node_tried(node, 500, can_send=False)
    observe(partitioner, topic, [2, 1], [7, 8])
    assert topic.sums is None
    assert partitioner.next_partitions(topic) == [1]
    observe(partitioner, topic, [0, 1], [7, 8])
    assert topic.weighed == [0]


def test_slow_nodes_are_not_left_out_without_a_timeout() -> None:
    partitioner = DefaultPartitioner(never, availability_timeout_ms=0)
    topic = topic_of(2)
    partitioner.node_tried(7, 0, can_send=True)
    partitioner.node_tried(7, 10**9, can_send=False)
    observe(partitioner, topic, [2, 1], [7, 8])
    assert topic.sums == [1, 3]


@given(st.lists(st.integers(0, 20), min_size=1, max_size=8), st.data())
def test_every_random_number_finds_an_available_partition(lengths: list[int], data: st.DataObject) -> None:
    partitioner = DefaultPartitioner(lambda bound: data.draw(st.integers(0, bound - 1)))
    leaders = data.draw(st.lists(st.sampled_from([-1, 5]), min_size=len(lengths), max_size=len(lengths)))
    available = [partition for partition, leader in enumerate(leaders) if leader >= 0]
    topic = topic_of(len(lengths), available)
    observe(partitioner, topic, lengths, leaders)
    assert set(partitioner.next_partitions(topic, 3)) <= set(available or range(len(lengths)))


# Round robin


def test_round_robin_deals_out_in_turn() -> None:
    partitioner = RoundRobinPartitioner()
    topic, other = topic_of(3), topic_of(2)
    assert [partitioner.choose(topic) for _ in range(4)] == [0, 1, 2, 0]
    assert partitioner.choose(other) == 0
    topic.update(3, [0, 2])
    assert [partitioner.choose(topic) for _ in range(3)] == [0, 2, 0]
    topic.update(3, [])
    assert [partitioner.choose(topic) for _ in range(3)] == [1, 2, 0]


# A user's own


def test_own_callable_gets_everything() -> None:
    calls: list[tuple[Any, ...]] = []

    def own(*arguments: Any) -> int:
        calls.append(arguments)
        return 2

    partitioner = resolved(own)
    assert isinstance(partitioner, CallablePartitioner)
    assert partitioner.choose_for(topic_of(3, [0, 2]), "k", b"k", {"a": 1}, b"{}") == 2
    assert calls == [("t", "k", b"k", {"a": 1}, b"{}", range(3), [0, 2])]


class Own:
    """A partitioner with Kafka's method."""

    def partition(
        self, topic: str, key: Any, key_bytes: Any, value: Any, value_bytes: Any, partitions: Any, available: Any
    ) -> int:
        return int(partitions[-1])


@pytest.mark.parametrize("chosen", [Own, Own()])
def test_own_object_is_called_by_its_method(chosen: object) -> None:
    assert resolved(chosen).choose_for(topic_of(4), None, None, None, None) == 3


@pytest.mark.parametrize("answer", [3, -1, None, "0", 1.0])
def test_wrong_answer_is_refused(answer: object) -> None:
    partitioner = resolved(lambda *arguments: answer)
    with pytest.raises(ConfigError, match=r"for topic t, which has 3 partitions; it must return one of"):
        partitioner.choose_for(topic_of(3), None, None, None, None)


def test_error_of_an_own_partitioner_reaches_the_caller() -> None:
    partitioner = resolved(lambda *arguments: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        partitioner.choose_for(topic_of(3), None, None, None, None)


@pytest.mark.parametrize(
    ("chosen", "text"),
    [
        ("murmur3", "partitioner='murmur3': use default or roundrobin, or pass a callable"),
        (5, "use default or roundrobin, or pass a callable"),
        (lambda key, partitions, available: 0, "which it does not take: too many positional arguments"),
    ],
)
def test_wrong_choice_is_refused_when_the_client_is_made(chosen: object, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        resolved(chosen)


@pytest.mark.parametrize(
    ("chosen", "kind"), [(None, DefaultPartitioner), ("default", DefaultPartitioner), ("roundrobin", RoundRobinPartitioner)]
)
def test_ours_are_chosen_by_name(chosen: object, kind: type) -> None:
    assert type(resolved(chosen)) is kind
