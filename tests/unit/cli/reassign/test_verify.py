"""`ottla reassign verify`: exit codes, and when the throttles are removed."""

import json

from tests.unit.cli.reassign.conftest import FakeCluster, RunOttla

PLAN = (
    b'{"partitions":[{"topic":"orders","partition":0,"replicas":[1,2,3]},{"topic":"orders","partition":1,"replicas":[4,3,1]}]}'
)


def test_plan_that_is_done(ottla: RunOttla, cluster: FakeCluster) -> None:
    cluster.partitions[1] = [4, 3, 1]
    said = ottla("reassign", "verify", "-", stdin=PLAN)
    assert (said.rc, said.err) == (0, "")
    assert said.lines == [
        "Status of partition reassignment:",
        "Reassignment of partition orders-0 is completed.",
        "Reassignment of partition orders-1 is completed.",
        "",
        "Clearing broker-level throttles on brokers 1,2,3,4",
        "Clearing topic-level throttles on topic orders",
    ]
    assert {name for name, _ in cluster.settings()} == {"1", "2", "3", "4", "orders"}


def test_throttles_stay_while_something_moves(ottla: RunOttla, cluster: FakeCluster) -> None:
    cluster.ongoing = {1: ([4, 3, 1, 2], [4], [2])}
    said = ottla("reassign", "verify", "-", stdin=PLAN)
    assert said.rc == 1
    assert said.lines[2] == "Reassignment of partition orders-1 is still in progress."
    assert cluster.settings() == []
    assert ottla("reassign", "verify", "-", "--preserve-throttles", stdin=PLAN).rc == 1


def test_plan_that_was_cancelled(ottla: RunOttla, cluster: FakeCluster) -> None:
    said = ottla("reassign", "verify", "-", "--json", "--preserve-throttles", stdin=PLAN)
    assert said.rc == 1
    shown = json.loads(said.out)
    assert (shown["isDone"], [each["state"] for each in shown["partitions"]]) == (False, ["completed", "elsewhere"])
    assert cluster.settings() == []


def test_move_to_a_dead_broker(ottla: RunOttla, cluster: FakeCluster) -> None:
    cluster.ongoing, cluster.down = {1: ([4, 3, 1, 2], [4], [2])}, {4}
    said = ottla("reassign", "verify", "-", stdin=PLAN)
    assert said.rc == 1
    assert said.err == (
        "ottla: broker 4 is down: the move of orders-1 waits for it; start it, or stop the moves of the plan with `ottla "
        "reassign cancel -`\n"
    )


def test_throttle_of_a_dead_broker_is_not_cleared(ottla: RunOttla, cluster: FakeCluster) -> None:
    cluster.partitions[1], cluster.down = [4, 3, 1], {4}
    said = ottla("reassign", "verify", "-", stdin=PLAN)
    assert said.err == "ottla: broker 4 is down, and keeps its throttle: verify the plan again when it is back\n"
    assert "Clearing broker-level throttles on brokers 1,2,3" in said.lines
