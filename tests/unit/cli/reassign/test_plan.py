"""Plans in JSON: those of Kafka's tool, with and without what it prints around them; mistakes are one sentence."""

from collections import Counter

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cli.reassign.plan import parse_brokers, parse_plan, read_topics
from ottla.client.admin.log_dirs import Replica
from ottla.client.reassignment_plan import moved, plan_json, propose
from ottla.ids import TopicPartition

ORDERS = TopicPartition("orders", 0)
LINE = '{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[1,2],"log_dirs":["any","/b"]}]}'


def test_plan_is_read_and_written_alike() -> None:
    plan = parse_plan(LINE, "plan.json")
    assert plan == ({ORDERS: [1, 2]}, {Replica("orders", 0, 2): "/b"})
    assert plan_json(*plan) == LINE


def test_log_dirs_and_version_may_be_missing() -> None:
    plan = parse_plan('{"partitions": [{"topic": "orders", "partition": 0, "replicas": [3]}]}', "plan.json")
    assert plan == ({ORDERS: [3]}, {})
    assert plan_json(plan.assignment).endswith('"replicas":[3],"log_dirs":["any"]}]}')


def test_partitions_are_written_in_order() -> None:
    text = plan_json({TopicPartition("b", 10): [1], TopicPartition("b", 9): [1], TopicPartition("a", 0): [1]})
    assert [(each.topic, each.partition) for each in parse_plan(text, "x").assignment] == [("a", 0), ("b", 9), ("b", 10)]


def test_output_of_kafkas_tool_is_a_plan() -> None:
    other = LINE.replace("[1,2]", "[3,2]")
    generated = f"Current partition replica assignment\n{LINE}\n\nProposed partition reassignment configuration\n{other}\n"
    assert parse_plan(generated, "x").assignment == {ORDERS: [3, 2]}
    executed = f"Current partition replica assignment\n\n{LINE}\n\nSave this to use as the …\nSuccessfully started …\n"
    assert parse_plan(executed, "x").assignment == {ORDERS: [1, 2]}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not JSON"),
        ("{}", "(partitions is missing)"),
        ('{"partitions": []}', "names no partition"),
        ('{"version": 2, "partitions": []}', "only version 1"),
        ('{"partitions": [{"topic": "a", "partition": 0, "replicas": []}]}', "a-0 names no broker"),
        ('{"partitions": [{"topic": "a", "partition": 0, "replicas": [1, 1]}]}', "a-0 names a broker twice"),
        ('{"partitions": [{"topic": "a", "partition": 0, "replicas": "12"}]}', "does not have the form"),
        ('{"partitions": [{"topic": "a", "partition": 0, "replicas": ["1"]}]}', "does not have the form"),
        (
            '{"partitions": [{"topic": "a", "partition": 0, "replicas": [1], "log_dirs": []}]}',
            "1 replicas of a-0, but 0 log_dirs",
        ),
        (
            '{"partitions": [{"topic": "a", "partition": 0, "replicas": [1]},{"topic": "a", "partition": 0, "replicas": [2]}]}',
            "names partition a-0 twice",
        ),
    ],
)
def test_mistakes_are_wrong_usage(text: str, said: str) -> None:
    with pytest.raises(click.UsageError) as caught:
        parse_plan(text, "plan.json")
    assert said in str(caught.value)


def test_brokers_and_topics(tmp_path: object) -> None:
    assert parse_brokers("1, 2,30") == [1, 2, 30]
    for text in ("", "1,,2", "1,x", "-1", "1,2,1", str(1 << 40)):
        with pytest.raises(click.UsageError):
            parse_brokers(text)
    file = f"{tmp_path}/topics.json"
    with open(file, "w", encoding="utf-8") as out:
        out.write('{"topics": [{"topic": "a"}, {"topic": "b"}]}')
    assert read_topics(file) == ["a", "b"]


Held = dict[TopicPartition, list[int]]


def spread(partitions: int, brokers: int, factor: int, topic: str = "orders") -> Held:
    """A topic that is spread evenly."""
    return {
        TopicPartition(topic, index): [1 + (index + turn) % brokers for turn in range(factor)] for index in range(partitions)
    }


def loads(assignment: Held) -> Counter[int]:
    return Counter(broker for replicas in assignment.values() for broker in replicas)


def without_racks(*brokers: int) -> dict[int, str | None]:
    return dict.fromkeys(brokers)


def test_nothing_moves_that_is_spread_already() -> None:
    current = spread(12, 3, 3)
    assert propose(current, without_racks(1, 2, 3)) == current


def test_new_broker_gets_its_share_and_no_more_moves() -> None:
    current = spread(12, 3, 3)
    proposed = propose(current, without_racks(1, 2, 3, 4))
    assert loads(proposed) == {1: 9, 2: 9, 3: 9, 4: 9}
    assert moved(current, proposed) == 9
    assert Counter(replicas[0] for replicas in proposed.values()) == {1: 3, 2: 3, 3: 3, 4: 3}


def test_broker_that_leaves_is_emptied_and_the_rest_stays() -> None:
    current = spread(8, 4, 2)
    proposed = propose(current, without_racks(1, 2, 3))
    assert set(loads(proposed)) == {1, 2, 3}
    assert max(loads(proposed).values()) - min(loads(proposed).values()) <= 1
    assert moved(current, proposed) == sum(4 in replicas for replicas in current.values())


def test_many_small_topics_are_spread_together() -> None:
    current: Held = {}
    for number in range(30):
        current |= spread(1, 3, 3, f"topic-{number}")
    proposed = propose(current, without_racks(1, 2, 3, 4, 5))
    assert set(loads(proposed).values()) == {18}
    assert moved(current, proposed) == 36


def test_each_topic_is_spread_even_if_all_together_are() -> None:
    current = {TopicPartition("a", index): [1] for index in range(4)} | {TopicPartition("b", index): [2] for index in range(4)}
    proposed = propose(current, without_racks(1, 2))
    for topic in ("a", "b"):
        assert Counter(held[0] for each, held in proposed.items() if each.topic == topic) == {1: 2, 2: 2}
    assert moved(current, proposed) == 4


def test_replicas_go_to_different_racks() -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"}
    current = {TopicPartition("orders", index): [1, 2, 3] for index in range(10)}
    proposed = propose(current, racks)
    assert all(len({racks[broker] for broker in replicas}) == 3 for replicas in proposed.values())
    assert set(loads(proposed).values()) == {5}
    assert moved(current, proposed) == 15, "each of 1, 2 and 3 gives five away"


def test_replication_factor_is_changed() -> None:
    current = spread(6, 3, 1)
    more = propose(current, without_racks(1, 2, 3), 3)
    assert all(set(replicas) == {1, 2, 3} for replicas in more.values())
    assert all(more[each][0] == current[each][0] for each in current), "leaders stay"
    fewer = propose(more, without_racks(1, 2, 3), 1)
    assert fewer == current


def test_preferred_leader_of_a_broker_that_leaves_is_replaced_in_place() -> None:
    current = {TopicPartition("orders", 0): [9, 1], TopicPartition("orders", 1): [1, 2]}
    proposed = propose(current, without_racks(1, 2))
    assert proposed == {TopicPartition("orders", 0): [2, 1], TopicPartition("orders", 1): [1, 2]}


def test_move_that_makes_a_topic_movable_again_is_followed_up() -> None:
    """With racks: what spreads all topics may let a topic be spread better than before."""
    topics = {"t0": {0: [1, 2]}, "t1": {0: [4, 5], 1: [2, 3], 2: [5, 1]}}
    current = {TopicPartition(name, index): replicas for name, topic in topics.items() for index, replicas in topic.items()}
    racks: dict[int, str | None] = {broker: f"rack-{broker % 3}" for broker in (1, 2, 3, 4, 5, 7)}
    proposed = propose(current, racks)
    assert propose(proposed, racks) == proposed


@given(
    st.lists(
        st.tuples(st.integers(1, 6), st.integers(1, 3), st.integers(0, 20)).map(
            lambda each: {
                index: [1 + (each[2] * (index + 1) + turn) % 5 for turn in range(each[1])] for index in range(each[0])
            }
        ),
        min_size=1,
        max_size=6,
    ),
    st.sets(st.integers(1, 7), min_size=3),
    st.booleans(),
)
def test_every_proposal_is_valid_and_even(topics: list[dict[int, list[int]]], brokers: set[int], has_racks: bool) -> None:
    current = {
        TopicPartition(f"t{number}", index): replicas
        for number, topic in enumerate(topics)
        for index, replicas in topic.items()
    }
    racks: dict[int, str | None] = {broker: f"rack-{broker % 3}" if has_racks else None for broker in brokers}
    proposed = propose(current, racks)
    for partition, replicas in proposed.items():
        assert len(replicas) == len(current[partition]) == len(set(replicas))
        assert set(replicas) <= brokers
        if has_racks:
            used = Counter(racks[broker] for broker in replicas)
            assert len(used) == min(len(replicas), len(set(racks.values())))
    counts = [loads(proposed)[broker] for broker in brokers]
    assert has_racks or max(counts) - min(counts) <= 1
    for topic in {each.topic for each in proposed} if not has_racks else ():
        held = loads({each: replicas for each, replicas in proposed.items() if each.topic == topic})
        assert max(held[broker] for broker in brokers) - min(held[broker] for broker in brokers) <= 1
    assert propose(proposed, racks) == proposed, "a proposal is not changed by the next one"
