"""Static members: a restart within the session moves nothing, a duplicate is fenced, and a long absence causes a rebalance."""

import pytest
from tests.support.peers.group_members import MemberOptions, Members, all_of, await_members, await_shared, await_values
from tests.support.peers.group_records import send_numbers
from tests.support.peers.topics import make_topic
from tests.support.servers.kafka_server import KafkaServer

PARTITIONS = 4


@pytest.mark.parametrize(
    ("library", "protocol"),
    [
        ("confluent", "eager"),
        ("confluent", "cooperative"),
        ("confluent", "consumer"),
        ("java", "eager"),
        ("java", "cooperative"),
        ("java", "consumer"),
        ("aiokafka", "eager"),
        # Not kafka-python: as a leader it rebalances when it learns of its topics, right after a start.
    ],
)
def test_restart_moves_nothing(cluster: KafkaServer, members: Members, name: str, library: str, protocol: str) -> None:
    make_topic(cluster.bootstrap, name, PARTITIONS)

    def open_as(instance: str) -> MemberOptions:
        return MemberOptions(name, topics=(name,), protocol=protocol, instance_id=instance)

    one, two = (members.open(library, cluster.bootstrap, open_as(instance)) for instance in ("one", "two"))
    await_shared([one, two], all_of(name, PARTITIONS))
    await_values([one, two], send_numbers(cluster.bootstrap, name, PARTITIONS, 0, 40))
    before, events = one.assignment, list(two.events)
    one.close()
    again = members.open(library, cluster.bootstrap, open_as("one"))
    await_shared([again, two], all_of(name, PARTITIONS))
    assert again.assignment == before
    assert two.events == events, "the other member must see no rebalance"
    sent = send_numbers(cluster.bootstrap, name, PARTITIONS, 40, 40)
    await_values([again, two], sent)
    assert not set(again.values) - set(sent), "it continues at the committed offsets"


@pytest.mark.parametrize(
    ("protocol", "who_fails", "why"),
    [("eager", 0, "FencedInstanceIdException"), ("consumer", 1, "UnreleasedInstanceIdException")],
)
def test_one_of_two_with_the_same_name_is_refused(
    cluster: KafkaServer, members: Members, name: str, protocol: str, who_fails: int, why: str
) -> None:
    make_topic(cluster.bootstrap, name, PARTITIONS)
    options = MemberOptions(name, topics=(name,), protocol=protocol, instance_id="only")
    first = members.open("java", cluster.bootstrap, options)
    await_shared([first], all_of(name, PARTITIONS))
    both = (first, members.open("java", cluster.bootstrap, options))
    loser, winner = both[who_fails], both[1 - who_fails]
    await_members([winner], lambda: loser.failure is not None, f"{loser} to be refused", 20)
    assert why in str(loser.failure)
    await_shared([winner], all_of(name, PARTITIONS))


@pytest.mark.parametrize("library", ["confluent", "java"])
def test_long_absence_causes_a_rebalance(cluster: KafkaServer, members: Members, name: str, library: str) -> None:
    make_topic(cluster.bootstrap, name, PARTITIONS)

    def open_as(instance: str) -> MemberOptions:
        return MemberOptions(name, topics=(name,), instance_id=instance, session_ms=1000)

    one, two = (members.open(library, cluster.bootstrap, open_as(instance)) for instance in ("one", "two"))
    await_shared([one, two], all_of(name, PARTITIONS))
    one.close()
    await_shared([two], all_of(name, PARTITIONS))
