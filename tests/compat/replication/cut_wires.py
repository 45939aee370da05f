"""Three nodes in three network namespaces; packets of a leader or of a follower are dropped, one way and both ways.

    unshare -Urn python -m tests.compat.replication.cut_wires leader|follower FOLDER [both in out]

Every acknowledged record is there once, the ISR shrinks and grows back, and a leader that is alone acknowledges nothing.
"""

import sys
from pathlib import Path

from tests.support.peers.leaders import await_in_sync, in_sync, leaders, make_replicated
from tests.support.peers.load import QUICK
from tests.support.peers.topics import await_true
from tests.support.recorded.direct import DirectSend
from tests.support.recorded.producers import RecordedProducer
from tests.support.recorded.replicas import await_equal_replicas, stored_values
from tests.support.recorded.run import Recorded
from tests.support.servers.ottla_cluster import NODES, PATIENT, OttlaCluster
from tests.support.servers.wires import DIRECTIONS, Wires

from ottla import Admin
from ottla.errors.codes import ErrorCode
from ottla.ids import TopicPartition

TOPIC = "wired"
LONELY = "lonely"
WAIT_S = 600
ASSIGNMENTS = {"leader": {0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2]}, "follower": {0: [1, 2, 3]}}
# A node that is cut off is known to be gone after its session; what waits in vain for it, after replica.socket.timeout.ms.
SETTINGS = PATIENT | {"replica.lag.time.max.ms": 6000, "replica.socket.timeout.ms": 6000}


class Story:
    """The running cluster and its load."""

    def __init__(self, wires: Wires, cluster: OttlaCluster, run: Recorded, steady: RecordedProducer, folder: Path) -> None:
        self._wires = wires
        self._cluster = cluster
        self._run = run
        self._steady = steady
        self._folder = folder

    def cut_leader(self, direction: str) -> None:
        """Cut off the leader of partition 0 until others lead, and send it a record meanwhile."""
        self._run.await_more(50)
        with self._admin(*NODES) as admin:
            leader = leaders(admin, TOPIC)[0]
        assert leader is not None
        others = [node for node in NODES if node != leader]
        value = f"{LONELY}-{direction}"
        with self._admin(*others) as admin:
            self._wires.cut(leader, others, direction)
            self._run.history.send(value, TopicPartition(TOPIC, 0), value)
            sent = DirectSend(self._cluster.nodes[leader].bootstrap, TOPIC, 0, value)
            log = self._folder / f"node-{leader}"
            await_true(lambda: sent.is_answered or value in stored_values(log, TOPIC, 0), "the leader to append it", WAIT_S)
            await_true(lambda: is_led_elsewhere(admin, leader), f"others to lead than {leader}, cut {direction}", WAIT_S)
            # librdkafka may ask the lonely leader for metadata, and stay with it until the cut is healed.
            self._run.await_more(50, self._steady)
            self._wires.heal()
            await_in_sync(admin, TOPIC, WAIT_S)
        code = sent.end(WAIT_S)
        assert code != ErrorCode.NONE, f"the lonely leader acknowledged a record that only it had, cut {direction}"
        print(f"leader {leader} cut, direction {direction}: others led, it answered {code}, all are in sync again", flush=True)

    def cut_follower(self, direction: str) -> None:
        """Cut a follower off from its leader alone, which drops it from the ISR and takes it back."""
        self._run.await_more(50)
        with self._admin(*NODES) as admin:
            leader = leaders(admin, TOPIC)[0]
            assert leader is not None
            controller = self._cluster.active_controller()
            follower = next(node for node in NODES if node not in (leader, controller))
            self._wires.cut(follower, [leader], direction)
            await_true(lambda: follower not in in_sync(admin, TOPIC)[0], f"the ISR to shrink, cut {direction}", WAIT_S)
            self._run.await_more(100)
            self._wires.heal()
            await_in_sync(admin, TOPIC, WAIT_S)
        print(f"follower {follower} cut from leader {leader}, direction {direction}: ISR shrank and grew back", flush=True)

    def _admin(self, *nodes: int) -> Admin:
        return Admin(",".join(self._cluster.nodes[node].bootstrap for node in nodes), **QUICK)


def is_led_elsewhere(admin: Admin, node: int) -> bool:
    found = admin.describe_topics([TOPIC])[TOPIC].partitions
    return all(each.leader not in (None, node) and node not in each.isr for each in found)


def main(role: str, folder: Path, *directions: str) -> None:
    assignment = ASSIGNMENTS[role]
    with Wires(NODES) as wires, OttlaCluster(folder, SETTINGS, wires=wires) as cluster:
        bootstrap = cluster.bootstrap
        with Admin(bootstrap, **QUICK) as admin:
            make_replicated(admin, TOPIC, assignment, {"min.insync.replicas": 2})
        with Recorded(folder) as run:
            steady = run.produce("ottla", bootstrap, TOPIC, len(assignment))
            run.produce("confluent", bootstrap, TOPIC, len(assignment))
            for library in ("ottla", "confluent"):
                run.read(library, bootstrap, TOPIC, len(assignment))
            story = Story(wires, cluster, run, steady, folder)
            for direction in directions or DIRECTIONS:
                (story.cut_leader if role == "leader" else story.cut_follower)(direction)
            run.await_more(50)
        assert run.report is not None
        print(*run.report.lines, sep="\n")
        folders = [folder / f"node-{node}" for node in NODES]
        await_equal_replicas(folders, TOPIC, len(assignment))
        lonely = {value for each in folders for value in stored_values(each, TOPIC, 0) if value.startswith(LONELY)}
        # Cut one way, the leader can still answer a fetch that waits: a follower may have got the record, and lead.
        lonely.discard(f"{LONELY}-in")
        assert not lonely, f"records that were not acknowledged stayed: {lonely}"


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
