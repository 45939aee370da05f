"""Subscriptions: several topics, regular expressions (also for topics created later), topics that get more partitions."""

import pytest
from tests.support.peers.group_members import MemberOptions, Members, all_of, await_shared, await_values
from tests.support.peers.group_records import send_numbers
from tests.support.peers.raw_client import RawClient
from tests.support.peers.topics import await_leaders, make_topic
from tests.support.servers.kafka_server import KafkaServer

from ottla.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic

KINDS = [
    ("confluent", "eager"),
    ("confluent", "consumer"),
    ("java", "eager"),
    ("java", "consumer"),
]


@pytest.mark.parametrize(("library", "protocol"), KINDS)
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
    [pytest.param(*kind, marks=pytest.mark.slow if kind[1] == "consumer" else ()) for kind in KINDS],
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


@pytest.mark.parametrize(("library", "protocol"), [*KINDS, ("aiokafka", "eager")])
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
