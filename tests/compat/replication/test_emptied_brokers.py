"""A broker comes back with an emptied directory: it leads nothing before it has caught up, and then it may lead again.

Written once for Ottla and for Apache Kafka, which proves the test.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.peers.leaders import await_in_sync, lead, leaders, make_replicated
from tests.support.peers.load import QUICK
from tests.support.peers.topics import await_true
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.mixed_cluster import MixedCluster, Part

from ottla import Admin, Consumer, Producer
from ottla.errors import KafkaError

pytestmark = pytest.mark.slow

TOPIC = "emptied"
CONTROLLER, BROKERS = 1, (2, 3, 4)
SETTINGS = {"broker.session.timeout.ms": 3000, "broker.heartbeat.interval.ms": 300, "unclean.leader.election.enable": False}

Make = Callable[[dict[str, object]], MixedCluster]


@pytest.fixture(params=["ottla", "apache"])
def make(request: pytest.FixtureRequest, apache_kafka: ApacheKafka, tmp_path: Path) -> Iterator[Make]:
    """A cluster of one controller and three brokers."""
    parts = {CONTROLLER: Part(request.param, "controller"), **{each: Part(request.param, "broker") for each in BROKERS}}
    made: list[MixedCluster] = []

    def start(settings: dict[str, object]) -> MixedCluster:
        cluster = MixedCluster(apache_kafka, tmp_path, parts, SETTINGS | settings)
        made.append(cluster)
        cluster.__enter__()
        cluster.start(CONTROLLER)
        cluster.start(*BROKERS)
        return cluster

    yield start
    for cluster in made:
        cluster.__exit__(None, None, None)


def bootstrap_of(cluster: MixedCluster, *nodes: int) -> str:
    return ",".join(f"127.0.0.1:{cluster.broker_ports[node]}" for node in nodes or BROKERS)


def produce(cluster: MixedCluster, first: int, count: int = 10) -> None:
    with Producer(bootstrap_of(cluster), acks="all", **QUICK) as producer:
        for each in [producer.send(TOPIC, b"%d" % number, partition=0) for number in range(first, first + count)]:
            each.result(120)


def stored(cluster: MixedCluster) -> list[int]:
    found: list[int] = []
    with Consumer(bootstrap_of(cluster), group_id=None, auto_offset_reset="earliest", **QUICK) as consumer:
        consumer.assign([(TOPIC, 0)])
        (end,) = consumer.end_offsets([(TOPIC, 0)]).values()
        while consumer.position((TOPIC, 0)) < end:
            found += [int(each.value) for each in consumer.poll(1.0)]
    return found


def replace_disk(cluster: MixedCluster, node: int) -> None:
    """kill -9, and another disk in its place: formatted, with another directory id."""
    cluster.kill(node)
    cluster.empty(node)
    cluster.start(node)


def test_emptied_follower_and_leader_catch_up_and_may_lead(make: Make) -> None:
    cluster = make({})
    with Admin(bootstrap_of(cluster), **QUICK) as admin:
        make_replicated(admin, TOPIC, {0: list(BROKERS)}, {"min.insync.replicas": 2})
        produce(cluster, 0)
        written = 10
        for emptied in (3, 2):  # a follower, then the leader
            replace_disk(cluster, emptied)
            await_in_sync(admin, TOPIC)
            produce(cluster, written)
            written += 10
            lead(admin, TOPIC, 0, emptied)
            produce(cluster, written)
            written += 10
            assert stored(cluster) == list(range(written))


def test_last_replica_in_sync_does_not_lead_with_an_empty_log(make: Make) -> None:
    """All records are acknowledged by it alone, and its disk is gone: nobody leads until somebody allows a loss.

    Apache Kafka 4.3.0 elects it, as the last known leader, and the other replicas truncate theirs to its empty log.
    """
    cluster = make({})
    is_ottla = cluster.parts[CONTROLLER].maker == "ottla"
    with Admin(bootstrap_of(cluster), **QUICK) as admin:
        make_replicated(admin, TOPIC, {0: list(BROKERS)}, {"min.insync.replicas": 1})
        produce(cluster, 0)
        cluster.kill(3, 4)
        produce(cluster, 10)
        replace_disk(cluster, 2)
        cluster.start(3, 4)

        def all_are_up() -> bool:
            try:
                return set(admin.describe_cluster().nodes) == set(BROKERS)
            except KafkaError:
                return False

        await_true(all_are_up, "all brokers to be up")
        if not is_ottla:
            await_true(lambda: leaders(admin, TOPIC)[0] == 2, "the emptied broker to lead")
            return
        refused = "was refused: LEADER_NOT_AVAILABLE"
        await_true(lambda: refused in cluster.running[2].log_text(), "the controller to refuse the replica's new disk")
        assert leaders(admin, TOPIC)[0] is None
        admin.elect_leaders("unclean", [(TOPIC, 0)]).raise_first()
        await_true(lambda: leaders(admin, TOPIC)[0] is not None, "a leader")
        assert leaders(admin, TOPIC)[0] in (3, 4), "a replica with records leads"
        await_in_sync(admin, TOPIC)
        assert stored(cluster)[:10] == list(range(10))
