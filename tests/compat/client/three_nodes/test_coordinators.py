"""Coordinators of groups and transactions move or die while Ottla's clients use them."""

from typing import Any

from tests.support.peers.leaders import await_in_sync, lead, leaders, make_replicated
from tests.support.peers.load import QUICK, Load
from tests.support.peers.ottla_clients import Faces
from tests.support.peers.topics import await_true
from tests.support.servers.three_nodes import NODES, ThreeNodes

from ottla import Admin

SPREAD = {0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2]}
GROUPS = "__consumer_offsets"
TRANSACTIONS = "__transaction_state"


def move_leaders(admin: Admin, topic: str) -> None:
    """Every partition gets another leader, so each coordinator moves."""
    await_in_sync(admin, topic)
    for partition, node in leaders(admin, topic).items():
        assert node is not None
        lead(admin, topic, partition, NODES[node % len(NODES)])


def read_committed(face: Faces, bootstrap: str, topic: str, partitions: int) -> list[tuple[int, bytes]]:
    """(partition, value) of everything that is committed."""
    consumer = face.consumer(bootstrap, auto_offset_reset="earliest", isolation_level="read_committed", **QUICK)
    consumer.assign([(topic, index) for index in range(partitions)])
    found: list[Any] = []
    for each, end in consumer.end_offsets([(topic, index) for index in range(partitions)]).items():
        while consumer.position(each) < end:
            found += consumer.poll(1.0)
    return [(record.partition, record.value) for record in found]


def test_group_coordinator_moves_and_dies(nodes: ThreeNodes, admin: Admin, face: Faces, topic: str) -> None:
    make_replicated(admin, topic, SPREAD, {"min.insync.replicas": 2})
    reading = {"auto_commit_interval_ms": 100, "session_timeout_ms": 30_000, "heartbeat_interval_ms": 300}
    with Load(face, nodes.bootstrap, topic, 3, consumer=reading, group=topic) as load:
        load.await_more(100)
        move_leaders(admin, GROUPS)
        load.await_more(200)
        description = admin.describe_consumer_groups([topic])[topic]
        assert len(description.members) == 1
        coordinator = description.coordinator
        nodes.kill(coordinator)
        load.await_more(200)
        nodes.start(coordinator)
        await_in_sync(admin, topic)
        load.await_more(100)
    load.consumer.commit()
    committed = load.consumer.committed([(topic, index) for index in range(3)])
    assert sum(each.offset for each in committed.values()) == len(load.found)


def test_transaction_coordinator_moves_within_a_transaction(nodes: ThreeNodes, admin: Admin, face: Faces, topic: str) -> None:
    make_replicated(admin, topic, SPREAD, {"min.insync.replicas": 2})
    producer = face.producer(nodes.bootstrap, transactional_id=topic, max_block_ms=120_000, **QUICK)
    producer.init_transactions()
    for number in range(4):
        producer.begin_transaction()
        for partition in range(3):
            producer.send(topic, b"%d before" % number, partition=partition)
        producer.flush()
        move_leaders(admin, TRANSACTIONS)
        for partition in range(3):
            producer.send(topic, b"%d after" % number, partition=partition)
        producer.send_offsets_to_transaction({(topic, 0): number + 1}, f"{topic}-group")
        if number == 2:
            producer.abort_transaction()
        else:
            producer.commit_transaction()
    expected = [b"%d %s" % (number, each) for number in (0, 1, 3) for each in (b"before", b"after")]

    def by_partition() -> list[list[bytes]]:
        found = read_committed(face, nodes.bootstrap, topic, 3)
        return [[value for partition, value in found if partition == index] for index in range(3)]

    # A commit is answered when it is decided; the last markers are written soon after.
    await_true(lambda: by_partition() == [expected] * 3, "all committed records, once and in order")
    offsets = admin.list_consumer_group_offsets([f"{topic}-group"])[f"{topic}-group"]
    assert [each.offset for each in offsets.values()] == [4]


def test_transaction_coordinator_dies_within_a_transaction(nodes: ThreeNodes, admin: Admin, face: Faces, topic: str) -> None:
    make_replicated(admin, topic, SPREAD, {"min.insync.replicas": 2})
    producer = face.producer(nodes.bootstrap, transactional_id=topic, max_block_ms=120_000, **QUICK)
    producer.init_transactions()
    producer.begin_transaction()
    deliveries = [producer.send(topic, b"%d" % index, partition=index % 3) for index in range(30)]
    producer.flush()
    coordinator = admin.describe_transactions([topic])[topic].coordinator
    nodes.kill(coordinator)
    deliveries += [producer.send(topic, b"%d" % index, partition=index % 3) for index in range(30, 60)]
    producer.commit_transaction()
    assert len({(each.partition, each.offset) for each in (delivery.result(60) for delivery in deliveries)}) == 60
    nodes.start(coordinator)
    with producer.transaction():
        producer.send(topic, b"60", partition=0)

    def by_partition() -> list[list[int]]:
        found = read_committed(face, nodes.bootstrap, topic, 3)
        return [[int(value) for index, value in found if index == partition] for partition in range(3)]

    expected = [list(range(partition, 61 if partition == 0 else 60, 3)) for partition in range(3)]
    await_true(lambda: by_partition() == expected, "all committed records, once and in order")
