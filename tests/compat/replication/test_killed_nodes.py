"""Leaders and coordinators that are killed, paused or cut off lose nothing."""

import time
from collections import Counter
from itertools import cycle
from pathlib import Path

import pytest
from tests.support.peers.leaders import await_in_sync, in_sync, leaders, make_replicated
from tests.support.peers.load import QUICK
from tests.support.peers.topics import await_true
from tests.support.recorded.direct import DirectSend
from tests.support.recorded.groups import MEMBERS, OffsetsWatch
from tests.support.recorded.replicas import await_equal_replicas, stored_values
from tests.support.recorded.run import Recorded
from tests.support.recorded.transactional import RecordedProgram
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.java_programs import JavaPrograms
from tests.support.servers.ottla_cli import hanging_transactions
from tests.support.servers.ottla_cluster import NODES, PATIENT, OttlaCluster

from ottla import Admin
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition
from ottla.testing import Cluster

ASSIGNMENT = {0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2]}
TOPIC = "replicated"


def kill_leaders(folder: Path, rounds: int, java: JavaPrograms | None = None) -> None:
    with OttlaCluster(folder) as cluster, Admin(cluster.bootstrap, **QUICK) as admin:
        make_replicated(admin, TOPIC, ASSIGNMENT, {"min.insync.replicas": 2})
        bootstrap = cluster.bootstrap
        with Recorded(folder, java) as run:
            for library in ("ottla", "confluent", *(() if java is None else ("java",))):
                run.produce(library, bootstrap, TOPIC, len(ASSIGNMENT))
            for library in ("ottla", "confluent"):
                run.read(library, bootstrap, TOPIC, len(ASSIGNMENT))
            for number in range(rounds):
                run.await_more(50)
                leader = leaders(admin, TOPIC)[number % len(ASSIGNMENT)]
                assert leader is not None
                cluster.kill(leader)
                run.await_more(50)
                cluster.start(leader)
                await_in_sync(admin, TOPIC)
        assert run.report is not None
        print("\n".join(run.report.lines))
        for node in NODES:
            cluster.kill(node)
        cluster.start(*NODES)
        await_in_sync(admin, TOPIC)
        await_equal_replicas([folder / f"node-{node}" for node in NODES], TOPIC, len(ASSIGNMENT))


def test_killed_leaders_lose_nothing(tmp_path: Path) -> None:
    kill_leaders(tmp_path, len(ASSIGNMENT))


@pytest.mark.slow
@pytest.mark.timeout(3600)  # ten seconds a round, more on a busy machine
def test_fifty_killed_leaders_lose_nothing(tmp_path: Path, apache_kafka: ApacheKafka) -> None:
    kill_leaders(tmp_path, 50, JavaPrograms(apache_kafka, tmp_path / "classes"))


KILLED_COORDINATORS_TOPIC = "transactions"
INTERNAL = ("__consumer_offsets", "__transaction_state")
SETTINGS = {
    "offsets.topic.num.partitions": 3,
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.num.partitions": 3,
    "transaction.state.log.replication.factor": 3,
    "transaction.state.log.min.isr": 2,
}


LIBRARIES = ("ottla", "confluent")
PROTOCOLS = ("classic", "consumer")
# The machine may be busy: only a hang takes so long.
PROGRESS_S = 600


class Clients:
    """Programs with transactions, and a group of each protocol with a member of each library."""

    def __init__(self, run: Recorded, bootstrap: str, program_count: int) -> None:
        self._run = run
        history = run.history
        self.programs = [
            run.add(
                RecordedProgram(
                    history, f"program-{number}", bootstrap, KILLED_COORDINATORS_TOPIC, len(ASSIGNMENT), library, pause_s=0.2
                )
            )
            for number, library in zip(range(program_count), cycle(LIBRARIES), strict=False)
        ]
        self._members = {
            f"group-{protocol}": [
                run.add(
                    MEMBERS[library](
                        history, f"{protocol}-{library}", bootstrap, KILLED_COORDINATORS_TOPIC, f"group-{protocol}", protocol
                    )
                )
                for library in LIBRARIES
            ]
            for protocol in PROTOCOLS
        }
        self.groups = list(self._members)
        self.watch = run.add(
            OffsetsWatch(history, bootstrap, [*self.groups, *(each.group for each in self.programs if each.group)])
        )
        run.read("ottla", bootstrap, KILLED_COORDINATORS_TOPIC, len(ASSIGNMENT), is_committed=True)

    def await_progress(self) -> None:
        """Every program commits two more transactions, and every group reads on."""
        goals = {each.name: each.committed + 2 for each in self.programs}
        seen = {group: self._seen(group) for group in self.groups}

        def late() -> list[str]:
            assert not self._run.failures, self._run.failures[:5]
            waiting = [each.name for each in self.programs if each.committed < goals[each.name]]
            return waiting + [group for group, before in seen.items() if self._seen(group) == before]

        try:
            await_true(lambda: not late(), "progress of every program and group", PROGRESS_S)
        except AssertionError as failure:
            failure.add_note(f"No progress: {', '.join(late())}")
            raise

    def _seen(self, group: str) -> int:
        return sum(each.seen for each in self._members[group])


def kill_coordinators(folder: Path, rounds: int, program_count: int) -> None:
    with OttlaCluster(folder, SETTINGS | PATIENT) as cluster, Admin(cluster.bootstrap, **QUICK) as admin:
        make_replicated(admin, KILLED_COORDINATORS_TOPIC, ASSIGNMENT, {"min.insync.replicas": 2})
        bootstrap = cluster.bootstrap
        killed: Counter[str] = Counter()
        with Recorded(folder) as run:
            clients = Clients(run, bootstrap, program_count)
            clients.await_progress()
            for number in range(rounds):
                if number % 2:
                    name = clients.programs[number // 2 % program_count].name
                    coordinator = admin.describe_transactions([name])[name].coordinator
                    killed["of transactions"] += 1
                else:
                    name = clients.groups[number // 2 % len(clients.groups)]
                    coordinator = admin.describe_consumer_groups([name])[name].coordinator
                    killed["of groups"] += 1
                print(f"{time.strftime('%T')} round {number}: node {coordinator} coordinates {name} and is killed", flush=True)
                cluster.kill(coordinator)
                clients.await_progress()
                cluster.start(coordinator)
                for topic in (KILLED_COORDINATORS_TOPIC, *INTERNAL):
                    await_in_sync(admin, topic, PROGRESS_S)
            clients.await_progress()
        assert run.report is not None
        replaced = [why for each in clients.programs for why in each.replaced]
        print(*run.report.lines, f"killed coordinators: {dict(killed)}", sep="\n")
        print(f"{clients.watch.answers} looks at offsets; {len(replaced)} producers replaced: {replaced[:3]}")
        assert hanging_transactions(bootstrap) == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_killed_coordinators(tmp_path: Path) -> None:
    kill_coordinators(tmp_path, 2, 4)


@pytest.mark.slow
@pytest.mark.timeout(7200)  # half a minute a round, several on a busy machine
def test_twenty_killed_coordinators(tmp_path: Path) -> None:
    kill_coordinators(tmp_path, 20, 8)


PAUSED_NODES_TOPIC = "paused"
LAG = {"replica.lag.time.max.ms": 2000}
LONG_SESSIONS = {**LAG, "broker.session.timeout.ms": 600_000}


def pause(folder: Path, who: str, settings: dict[str, int], rounds: int = 1) -> None:
    data = folder / "data"
    with Cluster(settings, nodes=3, data=data) as cluster, Admin(cluster.bootstrap_servers, **QUICK) as admin:
        cluster.create_topic(PAUSED_NODES_TOPIC, 1, {"min.insync.replicas": 2}, replication_factor=3)
        to_zombies: list[DirectSend] = []
        with Recorded(folder) as run:
            for library in ("ottla", "confluent"):
                run.produce(library, cluster.bootstrap_servers, PAUSED_NODES_TOPIC, 1)
                run.read(library, cluster.bootstrap_servers, PAUSED_NODES_TOPIC, 1)
            for number in range(rounds):
                run.await_more(50)
                leader = cluster.leader(PAUSED_NODES_TOPIC)
                others = [each for each in cluster.nodes if each.node_id != leader.node_id]
                node = {"leader": leader, "follower": others[0], "controller": cluster.controller()}[who]
                with node.pause():
                    if node.node_id == leader.node_id:
                        # It is in the zombie's socket when it goes on, and may be handled before the zombie knows.
                        sent = DirectSend(node.bootstrap_servers, PAUSED_NODES_TOPIC, 0, f"zombie-{number}")
                        to_zombies.append(sent)
                    await_true(lambda node=node: node.node_id not in in_sync(admin, PAUSED_NODES_TOPIC)[0], "the ISR to shrink")
                    run.await_more(50)
                cluster.wait_until_healthy()
                # It may have asked the node that was paused, which still has its old metadata.
                await_true(lambda: in_sync(admin, PAUSED_NODES_TOPIC) == {0: {1, 2, 3}}, "the ISR to grow")
                run.await_more(50)
            # In the history they would be invented records: no producer of it has sent them.
            codes = [each.end() for each in to_zombies]
            assert ErrorCode.NONE not in codes, f"the zombie answered {codes}"
        await_equal_replicas([data / f"node-{each}" for each in (1, 2, 3)], PAUSED_NODES_TOPIC, 1)
        stored = stored_values(data / "node-1", PAUSED_NODES_TOPIC, 0)
        assert not [value for value in stored if value.startswith("zombie")]


@pytest.mark.slow
def test_paused_leader_answers_nothing_as_a_zombie(tmp_path: Path) -> None:
    pause(tmp_path, "leader", LAG, rounds=3)


@pytest.mark.slow
def test_paused_follower_leaves_the_isr_by_its_lag_and_returns(tmp_path: Path) -> None:
    pause(tmp_path, "follower", LONG_SESSIONS)


@pytest.mark.slow
def test_paused_controller_is_replaced_and_returns(tmp_path: Path) -> None:
    pause(tmp_path, "controller", LAG, rounds=3)


CUT_NODES_TOPIC = "cut"
PARTITIONS = 3
# A node that is cut off is known to be gone after its session; what waits in vain for it, after replica.socket.timeout.ms.
CUT_NODES_SETTINGS = {"replica.lag.time.max.ms": 2000, "replica.socket.timeout.ms": 2000, "controller.socket.timeout.ms": 2000}


def is_led_elsewhere(admin: Admin, node: int) -> bool:
    found = admin.describe_topics([CUT_NODES_TOPIC])[CUT_NODES_TOPIC].partitions
    return all(each.leader is not None and each.leader != node and node not in each.isr for each in found)


def cut_leader(folder: Path, direction: str, *, rounds: int = 1, nodes: int = 3, from_clients: bool = False) -> None:
    data = folder / "data"
    with Cluster(CUT_NODES_SETTINGS, nodes=nodes, data=data) as cluster:
        cluster.create_topic(CUT_NODES_TOPIC, PARTITIONS, {"min.insync.replicas": 2}, replication_factor=3)
        with Recorded(folder) as run:
            for library in ("ottla", "confluent"):
                run.produce(library, cluster.bootstrap_servers, CUT_NODES_TOPIC, PARTITIONS)
                run.read(library, cluster.bootstrap_servers, CUT_NODES_TOPIC, PARTITIONS)
            lonely = [isolate(cluster, run, direction, from_clients, f"lonely-{number}") for number in range(rounds)]
            codes = [each.end() for each in lonely]
        assert ErrorCode.NONE not in codes, f"the lonely leader answered {codes}"
        folders = list(data.iterdir())
        await_equal_replicas(folders, CUT_NODES_TOPIC, PARTITIONS)
        for folder in folders:
            stayed = [value for value in stored_values(folder, CUT_NODES_TOPIC, 0) if value.startswith("lonely")]
            # Cut one way, the leader can still answer a fetch that waits: a follower may have got the record, and lead.
            assert not stayed or direction == "in", stayed


def isolate(cluster: Cluster, run: Recorded, direction: str, from_clients: bool, value: str) -> DirectSend:
    """Cut off the leader of partition 0 until others lead, send it a record meanwhile, and heal the cut."""
    run.await_more(50)
    leader = cluster.leader(CUT_NODES_TOPIC, 0)
    others = [each for each in cluster.nodes if each.node_id != leader.node_id]
    folder = cluster.data / f"node-{leader.node_id}"
    with Admin(",".join(each.bootstrap_servers for each in others), **QUICK) as admin:
        with leader.cut_off(from_nodes=others, from_clients=from_clients, direction=direction):
            run.history.send(value, TopicPartition(CUT_NODES_TOPIC, 0), value)
            sent = DirectSend(leader.bootstrap_servers, CUT_NODES_TOPIC, 0, value)
            if not from_clients:
                await_true(
                    lambda: sent.is_answered or value in stored_values(folder, CUT_NODES_TOPIC, 0), "the leader to append it"
                )
            await_true(lambda: is_led_elsewhere(admin, leader.node_id), "others to lead")
            run.await_more(50)
            assert sent.code != ErrorCode.NONE, "the lonely leader has acknowledged a record that only it has"
        cluster.wait_until_healthy()
    run.await_more(50)
    return sent


def test_leader_is_cut_off_from_the_others(tmp_path: Path) -> None:
    cut_leader(tmp_path, "both")


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["in", "out"])
def test_leader_is_cut_off_one_way(tmp_path: Path, direction: str) -> None:
    cut_leader(tmp_path, direction, rounds=2)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_leaders_of_five_nodes_are_cut_off_with_their_clients(tmp_path: Path) -> None:
    cut_leader(tmp_path, "both", rounds=3, nodes=5, from_clients=True)


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["both", "in", "out"])
def test_follower_is_cut_off_from_its_leader(tmp_path: Path, direction: str) -> None:
    """It reaches the controller, so it stays registered; the leader drops it from the ISR, and takes it back."""
    data = tmp_path / "data"
    with Cluster(CUT_NODES_SETTINGS, nodes=3, data=data) as cluster, Admin(cluster.bootstrap_servers, **QUICK) as admin:
        cluster.create_topic(CUT_NODES_TOPIC, 1, {"min.insync.replicas": 2}, replication_factor=3)
        with Recorded(tmp_path) as run:
            for library in ("ottla", "confluent"):
                run.produce(library, cluster.bootstrap_servers, CUT_NODES_TOPIC, 1)
                run.read(library, cluster.bootstrap_servers, CUT_NODES_TOPIC, 1)
            run.await_more(50)
            leader, controller = cluster.leader(CUT_NODES_TOPIC), cluster.controller()
            follower = next(each for each in cluster.nodes if each.node_id not in (leader.node_id, controller.node_id))
            with follower.cut_off(from_nodes=[leader], direction=direction):
                await_true(lambda: follower.node_id not in in_sync(admin, CUT_NODES_TOPIC)[0], "the ISR to shrink")
                run.await_more(100)
            cluster.wait_until_healthy()
            run.await_more(50)
        await_equal_replicas([data / f"node-{each}" for each in (1, 2, 3)], CUT_NODES_TOPIC, 1)
