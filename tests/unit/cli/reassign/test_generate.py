"""`ottla reassign generate`: the plan on standard output, what it does on standard error."""

import json

import pytest
from tests.unit.cli.reassign.conftest import FakeCluster, RunOttla

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
