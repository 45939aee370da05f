"""Lag in Kafka's own tool and `ottla groups describe`: the number of records that the group has not read."""

import json
import re

import pytest
from tests.support.peers.group_members import MemberOptions, Members, all_of, await_shared, await_values
from tests.support.peers.group_records import send_numbers
from tests.support.peers.topics import await_true, make_topic
from tests.support.servers.kafka_server import KafkaServer
from tests.support.servers.kafka_tools import KafkaTools
from tests.support.servers.ottla_cli import run_cli

PARTITIONS = 3
ROW = re.compile(r"^\S+ +\S+ +(?P<partition>\d+) +(?P<offset>\d+|-) +(?P<end>\d+) +(?P<lag>\d+|-) +\S+")

Lags = dict[int, tuple[int | None, int, int | None]]
"""By partition: committed offset, end, lag."""


def lags_of_kafka(tools: KafkaTools, bootstrap: str, group: str) -> Lags:
    """Lags that ConsumerGroupCommand prints."""
    said = tools.run("groups", "--bootstrap-server", bootstrap, "--describe", "--group", group).stdout
    rows = [found.groupdict() for line in said.splitlines() if (found := ROW.match(line))]
    return {int(row["partition"]): (_number(row["offset"]), int(row["end"]), _number(row["lag"])) for row in rows}


def lags_of_ottla(bootstrap: str, group: str) -> Lags:
    """Lags that `ottla groups describe` prints."""
    said = run_cli("groups", "describe", group, "--json", "-b", bootstrap)
    assert said.rc == 0, said.err
    (shown,) = json.loads(said.out)
    return {row["partition"]: (row["currentOffset"], row["logEndOffset"], row["lag"]) for row in shown["offsets"]}


def _number(text: str) -> int | None:
    return None if text == "-" else int(text)


@pytest.mark.parametrize("protocol", ["eager", "consumer"])
def test_lag_is_what_is_left(cluster: KafkaServer, members: Members, kafka_tools: KafkaTools, name: str, protocol: str) -> None:
    make_topic(cluster.bootstrap, name, PARTITIONS)
    options = MemberOptions(name, topics=(name,), protocol=protocol, more={"auto.commit.interval.ms": "100"})
    member = members.open("confluent", cluster.bootstrap, options)
    await_shared([member], all_of(name, PARTITIONS))
    await_values([member], send_numbers(cluster.bootstrap, name, PARTITIONS, 0, 30))

    def both_say(expected: Lags) -> bool:
        kafka, ottla = (lags_of_kafka(kafka_tools, cluster.bootstrap, name), lags_of_ottla(cluster.bootstrap, name))
        return kafka == ottla == expected

    await_true(lambda: both_say(dict.fromkeys(range(PARTITIONS), (10, 10, 0))), "a live group without lag")
    member.close()
    send_numbers(cluster.bootstrap, name, PARTITIONS, 30, 8)  # three more for partitions 0 and 1, two for partition 2
    expected: Lags = {0: (10, 13, 3), 1: (10, 13, 3), 2: (10, 12, 2)}
    assert lags_of_kafka(kafka_tools, cluster.bootstrap, name) == expected
    assert lags_of_ottla(cluster.bootstrap, name) == expected
