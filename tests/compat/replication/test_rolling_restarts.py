"""Nodes of a replicated topic are restarted with SIGTERM, one after the other: no send fails, and leaders return.

Then consumers and producers are: nothing is skipped, lost or doubled.
"""

from pathlib import Path

import pytest
from tests.support.peers.leaders import await_in_sync, leaders, make_replicated
from tests.support.peers.load import QUICK, Load
from tests.support.peers.ottla_clients import Faces
from tests.support.peers.raw_client import RawClient
from tests.support.peers.topics import await_true
from tests.support.recorded.groups import RecordedMember
from tests.support.recorded.run import Recorded
from tests.support.servers.ottla_cluster import NODES, OttlaCluster

from ottla import Admin
from ottla.wire.messages.describe_cluster import DescribeClusterRequest

ASSIGNMENT = {0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2]}
PREFERRED = {partition: replicas[0] for partition, replicas in ASSIGNMENT.items()}


def is_fenced(cluster: OttlaCluster, node: int) -> bool:
    """Whether the others see the broker as fenced."""
    with RawClient.to(next(iter(cluster.nodes.values())).bootstrap) as client:
        found = client.request(DescribeClusterRequest(include_fenced_brokers=True), 2).brokers
    return {each.broker_id: each.is_fenced for each in found}[node]


@pytest.mark.slow
def test_nodes_leave_and_return_without_a_failed_send(tmp_path: Path) -> None:
    # With such sessions only a permitted shutdown fences a broker in the time of a test.
    settings = {"leader.imbalance.check.interval.seconds": 1, "broker.session.timeout.ms": 600_000}
    with OttlaCluster(tmp_path, settings) as cluster, Admin(cluster.bootstrap, **QUICK) as admin:
        make_replicated(admin, "rolling", ASSIGNMENT, {"min.insync.replicas": 2})
        with (
            Faces("sync") as face,
            Load(face, cluster.bootstrap, "rolling", len(ASSIGNMENT), producer={"acks": "all", "retries": 2}) as load,
        ):
            for node in NODES:
                load.await_more(50)
                cluster.nodes.pop(node).stop()
                assert node not in leaders(admin, "rolling").values()
                await_true(lambda node=node: is_fenced(cluster, node), "the shutdown to be permitted")
                load.await_more(50)
                cluster.start(node)
                await_in_sync(admin, "rolling")
                await_true(lambda: leaders(admin, "rolling") == PREFERRED, "partitions to return to their preferred leaders")


@pytest.mark.slow
def test_nodes_then_consumers_then_producers_are_restarted(tmp_path: Path) -> None:
    with OttlaCluster(tmp_path, {"offsets.topic.replication.factor": 3}) as cluster, Admin(cluster.bootstrap, **QUICK) as admin:
        make_replicated(admin, "rolling", ASSIGNMENT, {"min.insync.replicas": 2})
        bootstrap = cluster.bootstrap
        with Recorded(tmp_path) as run:
            producers = [run.produce(library, bootstrap, "rolling", len(ASSIGNMENT)) for library in ("ottla", "confluent")]
            members = [
                run.add(RecordedMember(run.history, f"{protocol}-{number}", bootstrap, "rolling", f"g-{protocol}", protocol))
                for protocol in ("classic", "consumer")
                for number in range(2)
            ]
            run.read("ottla", bootstrap, "rolling", len(ASSIGNMENT))
            for node in NODES:
                run.await_more(50)
                cluster.nodes.pop(node).stop()
                run.await_more(50)
                cluster.start(node)
                await_in_sync(admin, "rolling")
            for number, member in enumerate(members):
                member.stop()
                run.await_more(50)
                protocol = member.name.partition("-")[0]
                again = RecordedMember(
                    run.history, f"{protocol}-again-{number}", bootstrap, "rolling", f"g-{protocol}", protocol
                )
                run.add(again)
                await_true(lambda again=again: bool(again.seen or again.failures), "the restarted member to get records")
            for producer in producers:
                run.stop(producer)
                run.await_more(50, run.produce(producer.name.partition("-")[0], bootstrap, "rolling", len(ASSIGNMENT)))
        assert run.report is not None
        print("\n".join(run.report.lines))
