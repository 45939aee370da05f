"""Cooperative rebalances, by clients (cooperative-sticky) and by the broker (KIP-848): only moved partitions are revoked."""

import pytest
from tests.support.peers.group_members import MemberOptions, Members, all_of, await_members, await_shared, await_values
from tests.support.peers.group_records import send_numbers
from tests.support.peers.topics import make_topic
from tests.support.servers.kafka_server import KafkaServer

PARTITIONS = 6
KINDS = [
    ("confluent", "cooperative"),
    ("confluent", "consumer"),
    ("java", "cooperative"),
    ("java", "consumer"),
]


@pytest.mark.parametrize(("library", "protocol"), KINDS)
def test_only_what_moves_is_revoked(cluster: KafkaServer, members: Members, name: str, library: str, protocol: str) -> None:
    make_topic(cluster.bootstrap, name, PARTITIONS)
    options = MemberOptions(name, topics=(name,), protocol=protocol)
    first = members.open(library, cluster.bootstrap, options)
    await_shared([first], all_of(name, PARTITIONS))
    second = members.open(library, cluster.bootstrap, options)
    await_shared([first, second], all_of(name, PARTITIONS))
    assert first.taken_away == second.assignment
    assert len(second.assignment) == 3
    second.close()
    await_shared([first], all_of(name, PARTITIONS))
    given = [partitions for what, partitions in first.events if what == "assigned" and partitions]
    assert given[-1] == second.assignment or given[-1] == first.taken_away
    assert len(first.taken_away) == 3
    await_values([first], send_numbers(cluster.bootstrap, name, PARTITIONS, 0, 30))


@pytest.mark.parametrize(("library", "protocol"), KINDS)
def test_reading_goes_on_during_a_rebalance(
    cluster: KafkaServer, members: Members, name: str, library: str, protocol: str
) -> None:
    """No record is missed while members join and leave."""
    make_topic(cluster.bootstrap, name, PARTITIONS)
    options = MemberOptions(name, topics=(name,), protocol=protocol)
    everyone = [members.open(library, cluster.bootstrap, options)]
    await_shared(everyone, all_of(name, PARTITIONS))
    sent: list[str] = []
    for turn in range(3):
        everyone.append(members.open(library, cluster.bootstrap, options))
        sent += send_numbers(cluster.bootstrap, name, PARTITIONS, turn * 60, 60)
        await_members(everyone, lambda: bool(everyone[-1].assignment), "the new member to have its share", 20)
    everyone[0].close()
    await_shared(everyone[1:], all_of(name, PARTITIONS))
    await_values(everyone, sent)
