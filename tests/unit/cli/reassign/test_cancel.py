"""`ottla reassign cancel`: of a plan, or of everything."""

import json

from tests.unit.cli.reassign.conftest import FakeCluster, RunOttla

from ottla.errors.codes import ErrorCode
from ottla.wire.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest

PLAN = b'{"partitions":[{"topic":"orders","partition":1,"replicas":[4,3,1],"log_dirs":["any","any","/two"]}]}'


def test_moves_of_a_plan_are_cancelled(ottla: RunOttla, cluster: FakeCluster) -> None:
    cluster.ongoing = {0: ([1, 2, 3, 4], [4], []), 1: ([4, 3, 1, 2], [4], [2])}
    said = ottla("reassign", "cancel", "-", stdin=PLAN)
    assert said.rc == 0, said.err
    assert said.lines[:2] == [
        "Successfully cancelled partition reassignment for: orders-1",
        "None of the specified partition moves are active.",
    ]
    assert cluster.wanted() == [{1: None}]
    assert "orders" in dict(cluster.settings()), "throttles are removed"


def test_additions_are_cancelled_too(ottla: RunOttla, cluster: FakeCluster) -> None:
    cluster.ongoing = {0: ([1, 2, 3, 4], [4], [])}
    said = ottla("reassign", "cancel", "--all", "--preserve-throttles", "--json")
    assert said.rc == 0, said.err
    assert json.loads(said.out)["cancelled"] == [{"topic": "orders", "partition": 0}]
    assert cluster.wanted() == [{0: None}]
    assert cluster.settings() == []


def test_moves_between_directories_go_back(ottla: RunOttla, cluster: FakeCluster) -> None:
    cluster.futures = {1: "/two"}
    said = ottla("reassign", "cancel", "-", stdin=PLAN)
    assert said.rc == 0, said.err
    assert said.lines[1] == "Stopped moving 1 replica between log directories."
    (request,) = cluster.node.asked_for(AlterReplicaLogDirsRequest)
    assert request.dirs[0].path == "/one"


def test_refusals_and_wrong_usage(ottla: RunOttla, cluster: FakeCluster) -> None:
    cluster.ongoing, cluster.refused = {1: ([4, 3, 1, 2], [4], [2])}, {1: ErrorCode.INVALID_REPLICA_ASSIGNMENT}
    said = ottla("reassign", "cancel", "-", stdin=PLAN)
    assert said.rc == 1
    assert "orders-1" in said.err
    assert ottla("reassign", "cancel").rc == 2
    assert ottla("reassign", "cancel", "--all", "-").rc == 2
