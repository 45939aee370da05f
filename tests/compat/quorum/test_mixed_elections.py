"""One Ottla voter among two of Apache Kafka's: 20 elections that its vote decides, 20 that it wins; snapshots each way."""

from pathlib import Path

import pytest
from tests.support.peers.topics import await_true, make_topic
from tests.support.servers.apache_kafka import ApacheKafka
from tests.support.servers.mixed_cluster import MixedCluster, Part

pytestmark = pytest.mark.slow

OTTLA = 3
ELECTIONS = 20
QUICK, SLOW = {"controller.quorum.fetch.timeout.ms": 1000}, {"controller.quorum.fetch.timeout.ms": 2500}


@pytest.mark.parametrize("winner", ["apache", "ottla"])
def test_twenty_elections(winner: str, apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    """The voter that hears no leader last is likely to win: the others have lost their pre-votes, and support it then."""
    apache, ottla = (SLOW, QUICK) if winner == "apache" else (QUICK, SLOW)
    nodes = {1: Part("apache", "controller", apache), 2: Part("apache", "controller", apache)}
    with MixedCluster(apache_kafka, tmp_path, {**nodes, OTTLA: Part("ottla", "controller", ottla)}) as cluster:
        cluster.start(1, 2, OTTLA)
        epochs, won = [cluster.quorum().leader_epoch], 0
        for _ in range(4 * ELECTIONS):
            paused, leader = cluster.elect_another()
            epochs.append(cluster.quorum().leader_epoch)
            # With the old leader paused, both others must agree: an Apache voter is elected by Ottla's vote, and the reverse.
            won += (leader == OTTLA) if winner == "ottla" else (OTTLA not in (paused, leader))
            if won == ELECTIONS:
                break
        print(f"{len(epochs) - 1} elections, {won} won by {winner}, epochs {epochs}")
        assert won == ELECTIONS
        assert epochs == sorted(set(epochs))
        status = cluster.quorum_status(cluster.leader())
        assert int(status["LeaderEpoch"]) >= epochs[-1]
        mark = cluster.quorum().high_watermark
        cluster.kill(1, 2, OTTLA)
        contents = [(cluster.metadata_log(node) / "00000000000000000000.log").read_bytes() for node in (1, 2, OTTLA)]
        shortest = min(map(len, contents))
        assert mark > ELECTIONS
        assert len({content[:shortest] for content in contents}) == 1, "the logs are equal byte for byte"


SNAPSHOTS = {"metadata.log.max.record.bytes.between.snapshots": 1500, "metadata.max.retention.bytes": 3000}


def checkpoints(cluster: MixedCluster, node: int) -> list[str]:
    return sorted(path.name for path in cluster.metadata_log(node).glob("*.checkpoint"))


def test_snapshots_are_loaded_each_way(apache_kafka: ApacheKafka, tmp_path: Path) -> None:
    nodes = {1: Part("apache", "controller"), 2: Part("ottla", "controller"), 3: Part("ottla", "controller")}
    nodes[4] = Part("ottla", "broker")
    with MixedCluster(apache_kafka, tmp_path, nodes, SNAPSHOTS) as cluster:
        cluster.start(1, 2, 3)
        cluster.start(4)
        server, made = cluster.running[4].bootstrap, 0
        for emptied, leaders in ((1, {2, 3}), (3, {1})):
            leader = cluster.elect_one_of(leaders)
            first = checkpoints(cluster, leader)[:1]

            def has_deleted(leader: int = leader, first: list[str] = first) -> bool:
                nonlocal made
                made += 1
                make_topic(server, f"topic-{made}")
                left = checkpoints(cluster, leader)
                return bool(left) and left[0] not in (*first, "00000000000000000000-0000000000.checkpoint")

            await_true(has_deleted, "the leader has deleted the log before a snapshot")
            cluster.kill(emptied)
            cluster.empty(emptied)
            cluster.start(emptied)
            await_true(lambda emptied=emptied: cluster.follows(emptied), f"node {emptied} has the log again")
            # Until it fetches, the leader counts what it had before: wait for the snapshot, not only for its log end offset.
            await_true(lambda emptied=emptied: bool(checkpoints(cluster, emptied)), "the log came with a snapshot")
            theirs, mine = checkpoints(cluster, leader), checkpoints(cluster, emptied)
            print(f"node {emptied} has {mine}, its leader {leader} has {theirs}")
            common = set(theirs) & set(mine)
            for name in common:
                paths = [cluster.metadata_log(node) / name for node in (leader, emptied)]
                assert paths[0].read_bytes() == paths[1].read_bytes()
        cluster.elect_one_of({1})
        make_topic(server, "in-the-end")
        assert "unexpected" not in cluster.running[3].log_text()
