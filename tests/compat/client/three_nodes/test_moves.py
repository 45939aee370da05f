"""Leaders, replicas and brokers move while Ottla's clients send and read: nothing is lost, doubled or out of order."""

from tests.support.peers.leaders import await_in_sync, lead, leaders, make_replicated
from tests.support.peers.load import QUICK, Load
from tests.support.peers.ottla_clients import Faces
from tests.support.peers.topics import await_true
from tests.support.servers.three_nodes import NODES, ThreeNodes

from ottla import Admin

SPREAD = {0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2]}


def test_leaders_move_by_preferred_elections(nodes: ThreeNodes, admin: Admin, face: Faces, topic: str) -> None:
    make_replicated(admin, topic, SPREAD)
    elections = face.admin(nodes.bootstrap)
    with Load(face, nodes.bootstrap, topic, 3) as load:
        for shift in (1, 2, 3):
            load.await_more(100)
            order = {(topic, index): [*replicas[shift:], *replicas[:shift]] for index, replicas in SPREAD.items()}
            elections.alter_partition_reassignments(order).raise_first()
            await_true(lambda: elections.list_partition_reassignments() == {}, "the new order of replicas")
            found = elections.elect_leaders("preferred", list(order))
            assert {type(error).__name__ for error in found.errors.values()} <= {"ElectionNotNeededError"}
            wanted = {index: replicas[0] for (_, index), replicas in order.items()}
            await_true(lambda wanted=wanted: leaders(admin, topic) == wanted, f"the leaders {wanted}")
        load.await_more(100)


def test_broker_is_killed_and_started_again(nodes: ThreeNodes, admin: Admin, face: Faces, topic: str) -> None:
    make_replicated(admin, topic, SPREAD, {"min.insync.replicas": 2})
    with Load(face, nodes.bootstrap, topic, 3) as load:
        load.await_more(100)
        nodes.kill(2)
        load.await_more(300)  # its partitions have new leaders
        nodes.start(2)
        await_in_sync(admin, topic)
        load.await_more(100)
        lead(admin, topic, 0, 2)
        load.await_more(100)


def test_paused_leader_is_replaced_and_fenced(nodes: ThreeNodes, admin: Admin, face: Faces, topic: str) -> None:
    """The leader stops without a sign. When it goes on, it still believes that it leads, and must not take a record."""
    make_replicated(admin, topic, SPREAD, {"min.insync.replicas": 2})
    # Clients lose their connections before other leaders are elected, and attempts to connect to the paused node never end: no
    # request may wait for one.
    never_ms = 600_000
    never = {"socket_connection_setup_timeout_ms": never_ms, "socket_connection_setup_timeout_max_ms": never_ms}
    writing, reading = {"request_timeout_ms": 2000, **never}, {"request_timeout_ms": 300, **never}
    with Load(face, nodes.bootstrap, topic, 3, producer=writing, consumer=reading) as load:
        load.await_more(100)
        nodes.pause(2)
        asking = face.admin(nodes.bootstrap_of(1, 3), **QUICK)
        await_true(lambda: 2 not in leaders(asking, topic).values(), "other leaders than node 2")
        known = len(load.found)
        await_true(
            lambda: {record.partition for record in load.found[known:]} == {0, 1, 2}, "records of every partition to be read"
        )
        load.await_more(200)
        nodes.resume(2)
        load.await_more(200)
        await_in_sync(admin, topic)
        lead(admin, topic, 1, 2)
        load.await_more(100)


def test_replicas_are_reassigned(nodes: ThreeNodes, admin: Admin, face: Faces, topic: str) -> None:
    make_replicated(admin, topic, {0: [1], 1: [2], 2: [3]})
    with Load(face, nodes.bootstrap, topic, 3) as load:
        for order in ({0: [2], 1: [3], 2: [1]}, {0: [3, 1], 1: [1, 2], 2: [2, 3]}, {0: [1], 1: [2], 2: [3]}):
            load.await_more(100)
            admin.alter_partition_reassignments({(topic, index): each for index, each in order.items()}).raise_first()
            await_true(lambda: admin.list_partition_reassignments() == {}, "the reassignment to end")
        await_true(lambda: leaders(admin, topic) == {0: 1, 1: 2, 2: 3}, "the leaders of the new replicas")
        load.await_more(100)


def test_rolling_restart(nodes: ThreeNodes, admin: Admin, face: Faces, topic: str) -> None:
    make_replicated(admin, topic, SPREAD, {"min.insync.replicas": 2})
    with Load(face, nodes.bootstrap, topic, 3) as load:
        for node in NODES:
            load.await_more(100)
            nodes.stop(node)
            load.await_more(50)
            nodes.start(node)
            await_in_sync(admin, topic)
        load.await_more(100)


def test_all_brokers_move_to_other_ports(nodes: ThreeNodes, admin: Admin, face: Faces, topic: str) -> None:
    make_replicated(admin, topic, SPREAD, {"min.insync.replicas": 2})
    with Load(face, nodes.bootstrap, topic, 3) as load:
        for node in NODES:  # one after the other: the clients learn each new port from the others
            load.await_more(50)
            nodes.stop(node)
            nodes.move(node)
            nodes.start(node)
            await_in_sync(face.admin(nodes.bootstrap_of(node), **QUICK), topic)
        load.await_more(100)
