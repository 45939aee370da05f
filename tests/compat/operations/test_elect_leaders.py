"""`ottla elect-leaders` on a cluster, beside kafka-leader-election."""

import json

from tests.compat.operations.conftest import RunOttla, RunTool
from tests.support.peers.leaders import await_leader, leaders, make_replicated
from tests.support.peers.topics import await_true

from ottla import Admin


def reorder(admin: Admin, topic: str, replicas: list[int]) -> None:
    """Another order of the replicas: the leader stays, and is the preferred one no more."""
    admin.alter_partition_reassignments({(topic, 0): replicas}).raise_first()
    await_true(lambda: admin.describe_topics([topic])[topic].partitions[0].replicas == tuple(replicas), "the new order")


def test_preferred_leaders_are_elected(ottla: RunOttla, admin: Admin, topic: str) -> None:
    make_replicated(admin, topic, {0: [1, 2, 3], 1: [2, 3, 1]})
    reorder(admin, topic, [3, 1, 2])
    assert leaders(admin, topic) == {0: 1, 1: 2}
    said = ottla("elect-leaders", topic, "--json")
    assert said.rc == 0, said.err
    first, second = json.loads(said.out)
    assert (first["partition"], first["result"], first["leaderBefore"], first["leader"]) == (0, "elected", 1, 3)
    assert (second["partition"], second["result"], second["leader"]) == (1, "not-needed", 2)
    await_leader(admin, topic, 0, 3)
    again = ottla("elect-leaders", f"{topic}:0")
    assert (again.rc, again.out) == (0, f"Valid replica already elected for partitions {topic}-0\n")
    reorder(admin, topic, [2, 1, 3])
    table = ottla("elect-leaders", "--all", columns=120)
    assert table.rc == 0, table.err
    (row,) = [line for line in table.lines if topic in line]
    assert row.split()[1:5] == ["0", "elected", "3", "2"]


def test_lines_are_those_of_kafkas_tool(ottla: RunOttla, kafka: RunTool, admin: Admin, topic: str) -> None:
    make_replicated(admin, topic, {0: [1, 2, 3]})
    reorder(admin, topic, [2, 1, 3])
    arguments = ("--election-type", "preferred", "--topic", topic, "--partition", 0)
    theirs = kafka("leader_election", *arguments)
    assert theirs.rc == 0, theirs.err
    await_leader(admin, topic, 0, 2)
    reorder(admin, topic, [1, 2, 3])
    ours = ottla("leader-election", *arguments)
    assert (ours.rc, ours.out) == (0, theirs.out)
    theirs, ours = kafka("leader_election", *arguments), ottla("leader-election", *arguments)
    assert (ours.rc, ours.out) == (0, theirs.out)


def test_election_that_fails_is_explained_and_ends_with_one(ottla: RunOttla, admin: Admin, topic: str) -> None:
    make_replicated(admin, topic, {0: [1, 2]})
    said = ottla("elect-leaders", f"{topic}:7")
    assert said.rc == 1
    assert f"for partition: {topic}-7: " in said.out
    assert "UNKNOWN_TOPIC_OR_PARTITION" in said.out
    unneeded = ottla("elect-leaders", topic, "--unclean", "--yes")
    assert (unneeded.rc, unneeded.err) == (0, "")
    assert unneeded.out == f"Valid replica already elected for partitions {topic}-0\n"
