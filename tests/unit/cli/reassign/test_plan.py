"""Plans in JSON: those of Kafka's tool, with and without what it prints around them; mistakes are one sentence."""

import click
import pytest

from ottla.cli.reassign.plan import parse_brokers, parse_plan, plan_json, read_topics
from ottla.client.admin.log_dirs import Replica
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
