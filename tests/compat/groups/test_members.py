"""Members that come, go, restart, change their subscription or their protocol: the same for every client library."""

import pytest
from confluent_kafka.admin import AdminClient
from tests.support.peers.group_members import MemberOptions, Members, all_of, await_members, await_shared, await_values
from tests.support.peers.group_records import send_numbers
from tests.support.peers.raw_client import RawClient
from tests.support.peers.topics import await_leaders, make_topic
from tests.support.servers.kafka_server import HANG_S, KafkaServer

from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic

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
        await_members(everyone, lambda: bool(everyone[-1].assignment), "the new member to have its share", 60)
    everyone[0].close()
    await_shared(everyone[1:], all_of(name, PARTITIONS))
    await_values(everyone, sent)


SCALING_KINDS = [
    ("confluent", "eager"),
    ("confluent", "cooperative"),
    ("confluent", "consumer"),
    ("java", "eager"),
    ("java", "cooperative"),
    ("java", "consumer"),
    ("aiokafka", "eager"),
]


@pytest.mark.parametrize(("library", "protocol"), SCALING_KINDS)
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


STATIC_MEMBERS_PARTITIONS = 4


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
    make_topic(cluster.bootstrap, name, STATIC_MEMBERS_PARTITIONS)

    def open_as(instance: str) -> MemberOptions:
        return MemberOptions(name, topics=(name,), protocol=protocol, instance_id=instance)

    one, two = (members.open(library, cluster.bootstrap, open_as(instance)) for instance in ("one", "two"))
    await_shared([one, two], all_of(name, STATIC_MEMBERS_PARTITIONS))
    await_values([one, two], send_numbers(cluster.bootstrap, name, STATIC_MEMBERS_PARTITIONS, 0, 40))
    before, events = one.assignment, list(two.events)
    one.close()
    again = members.open(library, cluster.bootstrap, open_as("one"))
    await_shared([again, two], all_of(name, STATIC_MEMBERS_PARTITIONS))
    assert again.assignment == before
    assert two.events == events, "the other member must see no rebalance"
    sent = send_numbers(cluster.bootstrap, name, STATIC_MEMBERS_PARTITIONS, 40, 40)
    await_values([again, two], sent)
    assert not set(again.values) - set(sent), "it continues at the committed offsets"


@pytest.mark.parametrize(
    ("protocol", "who_fails", "why"),
    [("eager", 0, "FencedInstanceIdException"), ("consumer", 1, "UnreleasedInstanceIdException")],
)
def test_one_of_two_with_the_same_name_is_refused(
    cluster: KafkaServer, members: Members, name: str, protocol: str, who_fails: int, why: str
) -> None:
    make_topic(cluster.bootstrap, name, STATIC_MEMBERS_PARTITIONS)
    options = MemberOptions(name, topics=(name,), protocol=protocol, instance_id="only")
    first = members.open("java", cluster.bootstrap, options)
    await_shared([first], all_of(name, STATIC_MEMBERS_PARTITIONS))
    both = (first, members.open("java", cluster.bootstrap, options))
    loser, winner = both[who_fails], both[1 - who_fails]
    await_members([winner], lambda: loser.failure is not None, f"{loser} to be refused", 60)
    assert why in str(loser.failure)
    await_shared([winner], all_of(name, STATIC_MEMBERS_PARTITIONS))


@pytest.mark.parametrize("library", ["confluent", "java"])
def test_long_absence_causes_a_rebalance(cluster: KafkaServer, members: Members, name: str, library: str) -> None:
    make_topic(cluster.bootstrap, name, STATIC_MEMBERS_PARTITIONS)

    def open_as(instance: str) -> MemberOptions:
        return MemberOptions(name, topics=(name,), instance_id=instance, session_ms=1000)

    one, two = (members.open(library, cluster.bootstrap, open_as(instance)) for instance in ("one", "two"))
    await_shared([one, two], all_of(name, STATIC_MEMBERS_PARTITIONS))
    one.close()
    await_shared([two], all_of(name, STATIC_MEMBERS_PARTITIONS))


SUBSCRIPTIONS_KINDS = [
    ("confluent", "eager"),
    ("confluent", "consumer"),
    ("java", "eager"),
    ("java", "consumer"),
]


@pytest.mark.parametrize(("library", "protocol"), SUBSCRIPTIONS_KINDS)
def test_patterns(cluster: KafkaServer, members: Members, name: str, library: str, protocol: str) -> None:
    for topic in (f"{name}-a", f"{name}-b2", f"{name}-c", f"other-{name}-a"):
        make_topic(cluster.bootstrap, topic, 2)
    options = MemberOptions(name, pattern=f"{name}-[ab].*", protocol=protocol)
    everyone = [members.open(library, cluster.bootstrap, options) for _ in range(2)]
    await_shared(everyone, all_of(f"{name}-a", 2) | all_of(f"{name}-b2", 2))
    await_values(everyone, send_numbers(cluster.bootstrap, f"{name}-b2", 2, 0, 10))


@pytest.mark.parametrize(
    ("library", "protocol"),
    # The broker evaluates regular expressions at most every ten seconds.
    [pytest.param(*kind, marks=pytest.mark.slow if kind[1] == "consumer" else ()) for kind in SUBSCRIPTIONS_KINDS],
)
def test_patterns_find_topics_created_later(
    cluster: KafkaServer, members: Members, name: str, library: str, protocol: str
) -> None:
    make_topic(cluster.bootstrap, f"{name}-a", 2)
    make_topic(cluster.bootstrap, f"other-{name}", 2)
    options = MemberOptions(name, pattern=f"{name}-[ab].*", protocol=protocol)
    everyone = [members.open(library, cluster.bootstrap, options) for _ in range(2)]
    await_shared(everyone, all_of(f"{name}-a", 2))
    make_topic(cluster.bootstrap, f"{name}-b2", 2)
    await_shared(everyone, all_of(f"{name}-a", 2) | all_of(f"{name}-b2", 2))
    await_values(everyone, send_numbers(cluster.bootstrap, f"{name}-b2", 2, 0, 10))


@pytest.mark.parametrize(("library", "protocol"), [*SUBSCRIPTIONS_KINDS, ("aiokafka", "eager")])
def test_topics_grow(cluster: KafkaServer, members: Members, name: str, library: str, protocol: str) -> None:
    topics = (f"{name}-a", f"{name}-b")
    for topic in topics:
        make_topic(cluster.bootstrap, topic, 2)
    everyone = [
        members.open(library, cluster.bootstrap, MemberOptions(name, topics=topics, protocol=protocol)) for _ in range(2)
    ]
    await_shared(everyone, all_of(topics[0], 2) | all_of(topics[1], 2))
    with RawClient.to(cluster.bootstrap) as client:
        request = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=topics[0], count=4, assignments=None)], timeout_ms=10_000
        )
        (grown,) = client.request(request, 3).results
    assert grown.error_code == 0
    await_leaders(cluster.bootstrap, topics[0], 4)
    await_shared(everyone, all_of(topics[0], 4) | all_of(topics[1], 2))
    await_values(everyone, send_numbers(cluster.bootstrap, topics[0], 4, 0, 20))


def group_type(bootstrap: str, group: str) -> str:
    """The type that the coordinator returns: `CLASSIC` or `CONSUMER`."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    listed = admin.list_consumer_groups(request_timeout=HANG_S).result()
    return next(each.type.name for each in listed.valid if each.group_id == group)


# librdkafka's cooperative-sticky may put user data into assignments; Kafka upgrades no group with such an assignor.
@pytest.mark.parametrize(("library", "old"), [("java", "eager"), ("java", "cooperative"), ("confluent", "eager")])
def test_upgrade_and_downgrade(cluster: KafkaServer, members: Members, name: str, library: str, old: str) -> None:
    make_topic(cluster.bootstrap, name, PARTITIONS)
    everything = all_of(name, PARTITIONS)
    classic = MemberOptions(name, topics=(name,), protocol=old)
    new = MemberOptions(name, topics=(name,), protocol="consumer")

    older = [members.open(library, cluster.bootstrap, classic) for _ in range(2)]
    sent = send_numbers(cluster.bootstrap, name, PARTITIONS, 0, 30)
    await_shared(older, everything)
    await_values(older, sent)
    assert group_type(cluster.bootstrap, name) == "CLASSIC"

    newer = [members.open(library, cluster.bootstrap, new)]
    await_shared([*older, *newer], everything)
    assert group_type(cluster.bootstrap, name) == "CONSUMER"
    newer.append(members.open(library, cluster.bootstrap, new))
    sent += send_numbers(cluster.bootstrap, name, PARTITIONS, 30, 30)
    await_shared([*older, *newer], everything)
    await_values([*older, *newer], sent)

    for member in older:
        member.close()
    await_shared(newer, everything)
    sent += send_numbers(cluster.bootstrap, name, PARTITIONS, 60, 30)
    await_values([*older, *newer], sent)

    back = [members.open(library, cluster.bootstrap, classic) for _ in range(2)]
    await_shared([*newer, *back], everything)
    for member in newer:
        member.close()
    await_shared(back, everything)
    assert group_type(cluster.bootstrap, name) == "CLASSIC"
    sent += send_numbers(cluster.bootstrap, name, PARTITIONS, 90, 30)
    await_values([*older, *newer, *back], sent)


def test_empty_groups_change_sides(cluster: KafkaServer, members: Members, name: str) -> None:
    """A group whose members have all left continues in the other protocol at its committed offsets."""
    make_topic(cluster.bootstrap, name, PARTITIONS)
    for turn, protocol in enumerate(["eager", "consumer", "cooperative"]):
        sent = send_numbers(cluster.bootstrap, name, PARTITIONS, turn * 30, 30)
        member = members.open("confluent", cluster.bootstrap, MemberOptions(name, topics=(name,), protocol=protocol))
        await_values([member], sent)
        assert sorted(member.values, key=int) == sent, "records below the committed offsets are not read again"
        member.close()
