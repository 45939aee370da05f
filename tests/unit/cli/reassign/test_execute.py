"""`ottla reassign execute`: what is set, asked and printed, in Kafka's order."""

import json

import pytest
from tests.unit.cli.reassign.conftest import FakeCluster, RunOttla

from ottla.errors.codes import ErrorCode
from ottla.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from ottla.wire.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from ottla.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest

PLAN = (
    b'{"version":1,"partitions":[{"topic":"orders","partition":0,"replicas":[4,2,3]},'
    b'{"topic":"orders","partition":1,"replicas":[2,3,1]}]}'
)


def test_current_assignment_is_printed_first(ottla: RunOttla, cluster: FakeCluster) -> None:
    said = ottla("reassign", "execute", "-", stdin=PLAN)
    assert (said.rc, said.err) == (0, "")
    assert said.lines[0] == "Current partition replica assignment"
    assert [each["replicas"] for each in json.loads(said.lines[2])["partitions"]] == [[1, 2, 3], [2, 3, 1]]
    assert said.lines[4] == "Save this to use as the --reassignment-json-file option during rollback"
    assert said.lines[5] == "Successfully started partition reassignments for orders-0,orders-1"
    assert cluster.wanted() == [{0: [4, 2, 3], 1: [2, 3, 1]}]
    assert cluster.settings() == []


def test_throttles_are_set_before_anything_moves(ottla: RunOttla, cluster: FakeCluster) -> None:
    said = ottla("reassign", "--execute", "--reassignment-json-file", "-", "--throttle", 5000, stdin=PLAN)
    assert said.rc == 0, said.err
    assert "the throttles stay until `ottla reassign verify`" in said.err
    settings = cluster.settings()
    assert settings[0][0] == "orders"
    assert dict(settings)["4"] == {
        "leader.replication.throttled.rate": "5000",
        "follower.replication.throttled.rate": "5000",
    }
    kinds = [type(message) for message, _ in cluster.node.asked]
    last_setting = max(at for at, kind in enumerate(kinds) if kind is IncrementalAlterConfigsRequest)
    assert last_setting < kinds.index(AlterPartitionReassignmentsRequest)


def test_log_directories_are_tried_until_the_replica_is_there(ottla: RunOttla, cluster: FakeCluster) -> None:
    plan = PLAN.replace(b"[4,2,3]", b'[4,2,3],"log_dirs":["/two","any","any"]')
    cluster.not_there = {4}
    said = ottla("reassign", "execute", "-", "--replica-alter-log-dirs-throttle", 9000, stdin=plan)
    assert said.rc == 0, said.err
    assert dict(cluster.settings()) == {"4": {"replica.alter.log.dirs.io.max.bytes.per.second": "9000"}}
    assert len(cluster.node.asked_for(AlterReplicaLogDirsRequest)) == 2
    assert said.lines[-1] == "Successfully started moving log directory to /two for replica orders-0 with broker 4"


def test_partition_that_the_controller_refuses(ottla: RunOttla, cluster: FakeCluster) -> None:
    cluster.refused = {0: ErrorCode.INVALID_REPLICA_ASSIGNMENT}
    said = ottla("reassign", "execute", "-", "--json", stdin=PLAN)
    assert said.rc == 1
    assert said.err.startswith("ottla: orders-0: partition orders-0 was not reassigned: no (INVALID_REPLICA_ASSIGNMENT)")
    shown = json.loads(said.out)
    assert shown["started"] == [{"topic": "orders", "partition": 1}]
    assert list(shown["errors"]) == ["orders-0"]


def test_wait_ends_when_nothing_moves(ottla: RunOttla, cluster: FakeCluster) -> None:
    cluster.partitions = {0: [4, 2, 3], 1: [2, 3, 1]}
    said = ottla("reassign", "execute", "-", "--throttle", 5000, "--wait", stdin=PLAN)
    assert (said.rc, said.err) == (0, "Done: 2 partitions moved.\n")
    assert dict(cluster.settings())["orders"]["leader.replication.throttled.replicas"] is None, "removed"


@pytest.mark.parametrize(
    ("plan", "arguments", "said"),
    [
        (PLAN.replace(b"[4,2,3]", b"[9,2,3]"), (), "broker 9"),
        (PLAN.replace(b'"partition":1', b'"partition":7'), (), "orders-7, which does not exist: orders has 2 partitions"),
        (PLAN.replace(b"orders", b"nothing"), (), "nothing"),
    ],
)
def test_plan_that_cannot_be_executed(
    ottla: RunOttla, cluster: FakeCluster, plan: bytes, arguments: tuple[str, ...], said: str
) -> None:
    ended = ottla("reassign", "execute", "-", *arguments, stdin=plan)
    assert ended.rc == 1
    assert said in ended.err
    assert cluster.wanted() == []


def test_other_moves_need_additional(ottla: RunOttla, cluster: FakeCluster) -> None:
    cluster.ongoing = {1: ([2, 3, 1, 4], [4], [])}
    refused = ottla("reassign", "execute", "-", stdin=PLAN)
    assert refused.rc == 1
    assert "orders-1 is being moved already" in refused.err
    assert ottla("reassign", "execute", "-", "--additional", stdin=PLAN).rc == 0


def test_throttle_below_a_kilobyte_is_wrong_usage(ottla: RunOttla) -> None:
    assert ottla("reassign", "execute", "-", "--throttle", 1000, stdin=PLAN).rc == 2
