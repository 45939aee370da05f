"""Groups change from the classic to the consumer protocol and back, with live members of both, which share the partitions."""

import pytest
from confluent_kafka.admin import AdminClient
from tests.support.peers.group_members import MemberOptions, Members, all_of, await_shared, await_values
from tests.support.peers.group_records import send_numbers
from tests.support.peers.topics import make_topic
from tests.support.servers.kafka_server import HANG_S, KafkaServer

PARTITIONS = 6


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
