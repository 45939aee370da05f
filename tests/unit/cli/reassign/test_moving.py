"""What a plan starts: log directories that cannot be set in time are an error that says what to do."""

from tests.unit.cli.reassign.conftest import FakeCluster, RunOttla

from ottla.errors.codes import ErrorCode
from ottla.wire.messages import alter_replica_log_dirs as moved

PLAN = b'{"partitions":[{"topic":"orders","partition":0,"replicas":[1,2,3],"log_dirs":["/two","any","any"]}]}'


def refuse(cluster: FakeCluster, code: int) -> None:
    result = moved.AlterReplicaLogDirPartitionResult(partition_index=0, error_code=code)
    topic = moved.AlterReplicaLogDirTopicResult(topic_name="orders", partitions=[result])
    cluster.node.handlers[moved.AlterReplicaLogDirsRequest] = lambda request, version: moved.AlterReplicaLogDirsResponse(
        results=[topic]
    )


def test_replica_that_does_not_come(ottla: RunOttla, cluster: FakeCluster) -> None:
    refuse(cluster, ErrorCode.REPLICA_NOT_AVAILABLE)
    said = ottla("reassign", "execute", "-", "--timeout", 150, stdin=PLAN)
    assert said.rc == 1
    assert "the log directories of orders-0 on broker 1 could not be set within 150 ms" in said.err


def test_directory_that_does_not_exist(ottla: RunOttla, cluster: FakeCluster) -> None:
    refuse(cluster, ErrorCode.LOG_DIR_NOT_FOUND)
    said = ottla("reassign", "execute", "-", stdin=PLAN)
    assert said.rc == 1
    assert "LOG_DIR_NOT_FOUND" in said.err
