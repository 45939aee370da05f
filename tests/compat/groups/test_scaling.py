"""Groups of 1 → 5 → 2 members, with every library and protocol: one owner per partition, no record missed."""

import pytest
from tests.support.peers.group_members import MemberOptions, Members, all_of, await_shared, await_values
from tests.support.peers.group_records import send_numbers
from tests.support.peers.topics import make_topic
from tests.support.servers.kafka_server import KafkaServer

PARTITIONS = 6
KINDS = [
    ("confluent", "eager"),
    ("confluent", "cooperative"),
    ("confluent", "consumer"),
    ("java", "eager"),
    ("java", "cooperative"),
    ("java", "consumer"),
    ("aiokafka", "eager"),
]


@pytest.mark.parametrize(("library", "protocol"), KINDS)
def test_scaling(cluster: KafkaServer, members: Members, name: str, library: str, protocol: str) -> None:
    make_topic(cluster.bootstrap, name, PARTITIONS)
    options = MemberOptions(name, topics=(name,), protocol=protocol)
    everything = all_of(name, PARTITIONS)
    all_members = [members.open(library, cluster.bootstrap, options)]
    sent = send_numbers(cluster.bootstrap, name, PARTITIONS, 0, 60)
    await_shared(all_members, everything)
    await_values(all_members, sent)
    all_members += [members.open(library, cluster.bootstrap, options) for _ in range(4)]
    await_shared(all_members, everything)
    sent += send_numbers(cluster.bootstrap, name, PARTITIONS, 60, 60)
    await_values(all_members, sent)
    for member in all_members[:3]:
        member.close()
    left = all_members[3:]
    await_shared(left, everything)
    assert [len(member.assignment) for member in left] == [3, 3]
    sent += send_numbers(cluster.bootstrap, name, PARTITIONS, 120, 60)
    await_values(all_members, sent)
    assert {value for member in all_members for value in member.values} == set(sent)


@pytest.mark.parametrize("protocol", ["eager", "cooperative"])
def test_members_one_after_the_other(cluster: KafkaServer, members: Members, name: str, protocol: str) -> None:
    """For kafka-python, which may hang, with any broker, if a rebalance interrupts its join: so members join one by one."""
    make_topic(cluster.bootstrap, name, PARTITIONS)
    options = MemberOptions(name, topics=(name,), protocol=protocol)
    first = members.open("kafka-python", cluster.bootstrap, options)
    await_shared([first], all_of(name, PARTITIONS))
    second = members.open("kafka-python", cluster.bootstrap, options)
    await_shared([first, second], all_of(name, PARTITIONS))
    await_values([first, second], send_numbers(cluster.bootstrap, name, PARTITIONS, 0, 60))
    second.close()
    await_shared([first], all_of(name, PARTITIONS))
    await_values([first], send_numbers(cluster.bootstrap, name, PARTITIONS, 60, 60))


def test_more_members_than_partitions(cluster: KafkaServer, members: Members, name: str) -> None:
    make_topic(cluster.bootstrap, name, 2)
    options = MemberOptions(name, topics=(name,))
    everyone = [members.open("confluent", cluster.bootstrap, options) for _ in range(4)]
    await_shared(everyone, all_of(name, 2), idle=2)
    for member in [member for member in everyone if member.assignment]:
        member.close()
        everyone.remove(member)
    await_shared(everyone, all_of(name, 2))
