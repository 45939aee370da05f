"""The verb: its actions, help with examples, and Kafka's name of it."""

import json

import click
import pytest
from tests.unit.cli.reassign.conftest import FakeCluster, RunOttla

from ottla.cli.reassign.command import ACTIONS, plan_path
from ottla.errors.codes import ErrorCode
from ottla.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from ottla.wire.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from ottla.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest


def test_help_has_examples(ottla: RunOttla) -> None:
    assert "ottla reassign generate --brokers 1,2,3,4 > plan.json" in ottla("reassign", "--help").out
    for action in ACTIONS:
        said = ottla("reassign", action, "--help")
        assert (said.rc, "Examples:" in said.out) == (0, True)


@pytest.mark.parametrize("verb", ["reassign", "reassign-partitions"])
def test_kafkas_spelling(ottla: RunOttla, verb: str) -> None:
    assert ottla(verb, "--bootstrap-server", "localhost:9092", "--list").out == "No partition reassignments found.\n"


def test_one_file_is_named() -> None:
    assert plan_path("a.json", None, "verify") == "a.json"
    assert plan_path(None, "b.json", "verify") == "b.json"
    for both in ((None, None), ("a", "b")):
        with pytest.raises(click.UsageError, match="ottla reassign verify "):
            plan_path(*both, "verify")


TOPICS = b'{"version": 1, "topics": [{"topic": "orders"}]}'


def test_plan_holds_what_changes(ottla: RunOttla, cluster: FakeCluster) -> None:
    cluster.partitions = {0: [1, 2], 1: [2, 1], 2: [1, 2], 3: [2, 1]}
    said = ottla("reassign", "generate", "--brokers", "1,2,3,4")
    assert said.rc == 0, said.err
    plan = json.loads(said.out)
    assert (plan["version"], len(plan["partitions"])) == (1, 4)
    assert said.err.splitlines() == [
        "ottla: the plan changes 4 partitions of 4 and moves 4 replicas of 8",
        "ottla: replicas by broker: 1: 4 → 2, 2: 4 → 2, 3: 0 → 2, 4: 0 → 2",
        "ottla: save it in a file, then: ottla reassign execute FILE",
    ]
    assert ottla("reassign", "generate").out == said.out, "all brokers that are up"


def test_nothing_to_move(ottla: RunOttla, cluster: FakeCluster) -> None:
    said = ottla("reassign", "generate", "--brokers", "1,2,3", "--topics", "orders")
    assert (said.rc, json.loads(said.out)["partitions"]) == (0, [])
    assert said.err == "ottla: nothing to move: 6 replicas are spread evenly over the brokers 1, 2, 3\n"


def test_output_of_kafkas_spelling(ottla: RunOttla, cluster: FakeCluster) -> None:
    said = ottla("reassign", "--generate", "--topics-to-move-json-file", "-", "--broker-list", "1,2,3", stdin=TOPICS)
    assert (said.rc, said.err) == (0, "")
    assert said.lines[0] == "Current partition replica assignment"
    assert json.loads(said.lines[1])["partitions"][0]["log_dirs"] == ["/one", "/one", "/one"]
    assert said.lines[2:4] == ["", "Proposed partition reassignment configuration"]
    assert len(json.loads(said.lines[4])["partitions"]) == 2


def test_racks(ottla: RunOttla, cluster: FakeCluster) -> None:
    cluster.partitions = {0: [1, 2]}
    cluster.racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    (partition,) = json.loads(ottla("reassign", "generate").out)["partitions"]
    assert len(set(partition["replicas"]) & {1, 2}) == 1
    assert json.loads(ottla("reassign", "generate", "--disable-rack-aware").out)["partitions"] == []
    cluster.racks[4] = None
    said = ottla("reassign", "generate")
    assert said.rc == 1
    assert said.err.startswith("ottla: broker 4 has no rack, but others have: ")


@pytest.mark.parametrize(
    ("arguments", "rc", "said"),
    [
        (("--brokers", "1,9"), 1, "broker 9 is not up"),
        (("--brokers", "1,2"), 1, "orders-0 would have 3 replicas, but there are 2 brokers to hold them"),
        (("--replication-factor", "5"), 1, "would have 5 replicas"),
        (("--topics", "nothing"), 1, "topic nothing does not exist"),
        (("--brokers", "x"), 2, "--brokers takes ids of brokers"),
        (("--topics", "orders,orders"), 2, "--topics names orders twice"),
        (("--topics", "orders", "--topics-to-move-json-file", "-"), 2, "not both"),
    ],
    ids=str,
)
def test_mistakes(ottla: RunOttla, arguments: tuple[str, ...], rc: int, said: str) -> None:
    ended = ottla("reassign", "generate", *arguments, stdin=TOPICS)
    assert ended.rc == rc
    assert said in ended.err


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


VERIFY_PLAN = (
    b'{"partitions":[{"topic":"orders","partition":0,"replicas":[1,2,3]},{"topic":"orders","partition":1,"replicas":[4,3,1]}]}'
)


def test_plan_that_is_done(ottla: RunOttla, cluster: FakeCluster) -> None:
    cluster.partitions[1] = [4, 3, 1]
    said = ottla("reassign", "verify", "-", stdin=VERIFY_PLAN)
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
    said = ottla("reassign", "verify", "-", stdin=VERIFY_PLAN)
    assert said.rc == 1
    assert said.lines[2] == "Reassignment of partition orders-1 is still in progress."
    assert cluster.settings() == []
    assert ottla("reassign", "verify", "-", "--preserve-throttles", stdin=VERIFY_PLAN).rc == 1


def test_plan_that_was_cancelled(ottla: RunOttla, cluster: FakeCluster) -> None:
    said = ottla("reassign", "verify", "-", "--json", "--preserve-throttles", stdin=VERIFY_PLAN)
    assert said.rc == 1
    shown = json.loads(said.out)
    assert (shown["isDone"], [each["state"] for each in shown["partitions"]]) == (False, ["completed", "elsewhere"])
    assert cluster.settings() == []


def test_move_to_a_dead_broker(ottla: RunOttla, cluster: FakeCluster) -> None:
    cluster.ongoing, cluster.down = {1: ([4, 3, 1, 2], [4], [2])}, {4}
    said = ottla("reassign", "verify", "-", stdin=VERIFY_PLAN)
    assert said.rc == 1
    assert said.err == (
        "ottla: broker 4 is down: the move of orders-1 waits for it; start it, or stop the moves of the plan with `ottla "
        "reassign cancel -`\n"
    )


def test_throttle_of_a_dead_broker_is_not_cleared(ottla: RunOttla, cluster: FakeCluster) -> None:
    cluster.partitions[1], cluster.down = [4, 3, 1], {4}
    said = ottla("reassign", "verify", "-", stdin=VERIFY_PLAN)
    assert said.err == "ottla: broker 4 is down, and keeps its throttle: verify the plan again when it is back\n"
    assert "Clearing broker-level throttles on brokers 1,2,3" in said.lines


CANCEL_PLAN = b'{"partitions":[{"topic":"orders","partition":1,"replicas":[4,3,1],"log_dirs":["any","any","/two"]}]}'


def test_moves_of_a_plan_are_cancelled(ottla: RunOttla, cluster: FakeCluster) -> None:
    cluster.ongoing = {0: ([1, 2, 3, 4], [4], []), 1: ([4, 3, 1, 2], [4], [2])}
    said = ottla("reassign", "cancel", "-", stdin=CANCEL_PLAN)
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
    said = ottla("reassign", "cancel", "-", stdin=CANCEL_PLAN)
    assert said.rc == 0, said.err
    assert said.lines[1] == "Stopped moving 1 replica between log directories."
    (request,) = cluster.node.asked_for(AlterReplicaLogDirsRequest)
    assert request.dirs[0].path == "/one"


def test_refusals_and_wrong_usage(ottla: RunOttla, cluster: FakeCluster) -> None:
    cluster.ongoing, cluster.refused = {1: ([4, 3, 1, 2], [4], [2])}, {1: ErrorCode.INVALID_REPLICA_ASSIGNMENT}
    said = ottla("reassign", "cancel", "-", stdin=CANCEL_PLAN)
    assert said.rc == 1
    assert "orders-1" in said.err
    assert ottla("reassign", "cancel").rc == 2
    assert ottla("reassign", "cancel", "--all", "-").rc == 2


def test_moves_are_listed(ottla: RunOttla, cluster: FakeCluster) -> None:
    assert ottla("reassign", "list").out == "No partition reassignments found.\n"
    cluster.ongoing = {0: ([1, 2, 3, 4], [4], []), 1: ([4, 3, 1, 2], [4], [2])}
    assert ottla("reassign", "--list").lines == [
        "Current partition reassignments:",
        "orders-0: replicas: 1,2,3,4. adding: 4.",
        "orders-1: replicas: 4,3,1,2. adding: 4. removing: 2.",
    ]
    assert json.loads(ottla("reassign", "list", "--json").out)[1] == {
        "topic": "orders",
        "partition": 1,
        "replicas": [4, 3, 1, 2],
        "adding": [4],
        "removing": [2],
    }
    assert ottla("reassign", "list", columns=80).lines[2].split() == ["orders", "1", "4,3,1,2", "4", "2"]
