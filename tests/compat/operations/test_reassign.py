"""`ottla reassign` on four nodes: moves and throttles, and files that Kafka's own tool reads and writes."""

import json
from pathlib import Path

from tests.compat.operations.conftest import RunOttla, RunTool
from tests.support.peers.leaders import await_in_sync, in_sync, make_replicated
from tests.support.peers.topics import await_true

from ottla import Admin
from ottla.testing import Cluster

RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
LOG_DIR_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
REPLICAS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")


def replicas(admin: Admin, topic: str) -> dict[int, tuple[int, ...]]:
    return {each.partition: each.replicas for each in admin.describe_topics([topic])[topic].partitions}


def throttles(admin: Admin, topic: str) -> dict[str, dict[str, str | None]]:
    """The throttles that are set, of the topic and of brokers."""
    found = admin.describe_configs([("topic", topic), *(("broker", str(node)) for node in (1, 2, 3, 4))])
    return {
        str(resource): {
            name: entry.value
            for name, entry in settings.items()
            if name in (*RATES, LOG_DIR_RATE, *REPLICAS) and not entry.is_default and entry.value
        }
        for resource, settings in found.items()
        if settings
    }


def none_set(found: dict[str, dict[str, str | None]]) -> bool:
    return not any(found.values())


def plan_of(topic: str, assignment: dict[int, list[int]]) -> str:
    partitions = [{"topic": topic, "partition": number, "replicas": held} for number, held in assignment.items()]
    return json.dumps({"version": 1, "partitions": partitions})


def test_topic_moves_to_a_new_broker_with_few_moves(
    ottla: RunOttla, cluster: Cluster, admin: Admin, topic: str, tmp_path: Path
) -> None:
    make_replicated(admin, topic, {0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2], 3: [1, 2, 3]})
    for number in range(40):
        cluster.produce(topic, f"record {number}", partition=number % 4)
    generated = ottla("reassign", "generate", "--brokers", "1,2,3,4", "--topics", topic)
    assert generated.rc == 0, generated.err
    assert "moves 3 replicas of 12" in generated.err
    file = tmp_path / "plan.json"
    file.write_text(generated.out)
    executed = ottla("reassign", "execute", file, "--throttle", 10_000_000, "--wait")
    assert executed.rc == 0, executed.err
    assert executed.err.splitlines()[-1].startswith("Done: ")
    planned = {each["partition"]: tuple(each["replicas"]) for each in json.loads(generated.out)["partitions"]}
    assert planned.items() <= replicas(admin, topic).items()
    assert sorted(broker for held in replicas(admin, topic).values() for broker in held) == sorted([1, 2, 3, 4] * 3)
    await_true(lambda: none_set(throttles(admin, topic)), "the throttles are removed, and the broker that is asked knows it")
    await_in_sync(admin, topic)
    assert len(cluster.records(topic)) == 40
    again = ottla("reassign", "generate", "--brokers", "1,2,3,4", "--topics", topic)
    assert json.loads(again.out)["partitions"] == []
    assert "nothing to move" in again.err
    back = tmp_path / "back.json"
    back.write_text(executed.out)
    assert ottla("reassign", "execute", back, "--wait").rc == 0, "the output of execute is the way back"
    assert set(replicas(admin, topic)[0]) == {1, 2, 3}


def test_kafkas_tool_takes_our_files_and_we_take_its(
    ottla: RunOttla, kafka: RunTool, admin: Admin, topic: str, tmp_path: Path
) -> None:
    make_replicated(admin, topic, {0: [1, 2, 3], 1: [2, 3, 1]})
    plan, topics = tmp_path / "plan.json", tmp_path / "topics.json"
    plan.write_text(ottla("reassign", "generate", "--brokers", "2,3,4", "--topics", topic).out)
    theirs = kafka("reassign", "--execute", "--reassignment-json-file", plan)
    assert theirs.rc == 0, theirs.out
    await_true(lambda: ottla("reassign", "verify", plan).rc == 0, "our verify sees what Kafka's tool has started")
    assert all(1 not in held for held in replicas(admin, topic).values())
    theirs = kafka("reassign", "--verify", "--reassignment-json-file", plan)
    ours = ottla("reassign", "--verify", "--reassignment-json-file", plan)
    assert (ours.rc, ours.out) == (theirs.rc, theirs.out)

    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))
    generated = kafka("reassign", "--generate", "--topics-to-move-json-file", topics, "--broker-list", "1,2,3")
    assert generated.rc == 0, generated.out
    mine = ottla("reassign", "--generate", "--topics-to-move-json-file", topics, "--broker-list", "1,2,3")
    assert mine.lines[:3] == generated.lines[:3], "the current assignment, byte for byte"
    assert mine.lines[3] == generated.lines[3]
    whole = tmp_path / "whole-output.txt"
    whole.write_text(generated.out)
    executed = ottla("reassign", "execute", whole, "--wait")
    assert executed.rc == 0, executed.err
    assert all(4 not in held for held in replicas(admin, topic).values())
    rollback = tmp_path / "rollback.json"
    rollback.write_text(executed.lines[2])
    theirs = kafka("reassign", "--execute", "--reassignment-json-file", rollback)
    assert theirs.rc == 0, theirs.out
    await_true(lambda: ottla("reassign", "verify", rollback).rc == 0, "Kafka's tool goes back with our file")


def test_throttles_are_those_of_kafkas_tool(ottla: RunOttla, kafka: RunTool, admin: Admin, topic: str, tmp_path: Path) -> None:
    make_replicated(admin, topic, {0: [1, 2, 3], 1: [2, 3, 1]})
    plan, back = tmp_path / "plan.json", tmp_path / "back.json"
    plan.write_text(plan_of(topic, {0: [4, 2, 3], 1: [2, 3, 1]}))
    back.write_text(plan_of(topic, {0: [1, 2, 3], 1: [2, 3, 1]}))
    flags = ("--reassignment-json-file", plan, "--throttle", 5_000_000, "--replica-alter-log-dirs-throttle", 6_000_000)
    theirs = kafka("reassign", "--execute", *flags)
    assert theirs.rc == 0, theirs.out
    set_by_kafka = throttles(admin, topic)
    assert set_by_kafka[f"topic {topic}"] == dict(zip(REPLICAS, ("0:1,0:2,0:3,1:1,1:2,1:3", "0:4"), strict=True))
    await_true(lambda: kafka("reassign", "--verify", "--reassignment-json-file", plan).out.count("completed") == 2, "the move")
    await_true(lambda: none_set(throttles(admin, topic)), "the throttles are removed, and the broker that is asked knows it")
    assert ottla("reassign", "execute", back, "--wait").rc == 0
    ours = ottla("reassign", "--execute", *flags)
    assert ours.rc == 0, ours.err
    assert "verify" in ours.err, "the throttles have to be removed"
    assert throttles(admin, topic) == set_by_kafka
    await_true(lambda: ottla("reassign", "verify", plan).rc == 0, "the move")
    await_true(lambda: none_set(throttles(admin, topic)), "verify removes them, and the broker that is asked knows it")


def test_move_is_listed_and_cancelled(
    ottla: RunOttla, kafka: RunTool, cluster: Cluster, admin: Admin, topic: str, tmp_path: Path
) -> None:
    leader, other, target = [node.node_id for node in cluster.nodes if node.node_id != cluster.controller().node_id]
    make_replicated(admin, topic, {0: [leader, other]})
    plan = tmp_path / "plan.json"
    plan.write_text(plan_of(topic, {0: [target, other]}))
    with cluster.cut_off(target, from_nodes=[leader], from_clients=False):  # so that the move cannot end
        executed = ottla("reassign", "execute", plan, "--throttle", 1_000_000)
        assert executed.rc == 0, executed.err
        assert not none_set(throttles(admin, topic))
        line = f"{topic}-0: replicas: {target},{other},{leader}. adding: {target}. removing: {leader}."
        assert line in ottla("reassign", "list").lines
        assert line in kafka("reassign", "--list").out.splitlines()
        (moving,) = [each for each in json.loads(ottla("reassign", "list", "--json").out) if each["topic"] == topic]
        assert (moving["adding"], moving["removing"]) == ([target], [leader])
        verified = ottla("reassign", "verify", plan)
        assert (verified.rc, verified.lines[1]) == (1, f"Reassignment of partition {topic}-0 is still in progress.")
        assert not none_set(throttles(admin, topic)), "it is not done"
        refused = ottla("reassign", "execute", plan)
        assert refused.rc == 1
        assert "--additional" in refused.err
        assert ottla("reassign", "execute", plan, "--additional", "--throttle", 2_000_000).rc == 0
        assert throttles(admin, topic)[f"broker {target}"] == dict.fromkeys(RATES, "2000000")
        cancelled = ottla("reassign", "cancel", plan, "--preserve-throttles")
        assert cancelled.rc == 0, cancelled.err
        assert cancelled.lines[0] == f"Successfully cancelled partition reassignment for: {topic}-0"
        await_true(lambda: set(replicas(admin, topic)[0]) == {leader, other}, "the old replicas")
        assert not none_set(throttles(admin, topic)), "--preserve-throttles"
        flags = ("--reassignment-json-file", plan)
        assert kafka("reassign", "--execute", *flags).rc == 0
        theirs = kafka("reassign", "--cancel", *flags, "--preserve-throttles")
        assert theirs.rc == 0, theirs.out
        assert theirs.lines[0] == cancelled.lines[0]
        await_true(lambda: set(replicas(admin, topic)[0]) == {leader, other}, "the old replicas again")
    again = ottla("reassign", "cancel", plan)
    assert (again.rc, again.lines[0]) == (0, "None of the specified partition reassignments are active.")
    await_true(lambda: none_set(throttles(admin, topic)), "the throttles are removed, and the broker that is asked knows it")
    cluster.wait_until_healthy()
    assert in_sync(admin, topic)[0] == {leader, other}


def test_plan_that_the_cluster_cannot_take(ottla: RunOttla, admin: Admin, topic: str, tmp_path: Path) -> None:
    make_replicated(admin, topic, {0: [1, 2]})
    plan = tmp_path / "plan.json"
    for assignment, said in (({0: [1, 9]}, "broker 9"), ({7: [1, 2]}, f"{topic}-7, which does not exist")):
        plan.write_text(plan_of(topic, assignment))
        refused = ottla("reassign", "execute", plan)
        assert refused.rc == 1
        assert said in refused.err
        assert len(refused.err.splitlines()) == 1
    plan.write_text(plan_of(topic, {0: [1, 2, 3]}))
    kept = ottla("reassign", "execute", plan, "--disallow-replication-factor-change")
    assert kept.rc == 1
    assert "INVALID_REPLICATION_FACTOR" in kept.err
    assert replicas(admin, topic) == {0: (1, 2)}
    assert ottla("reassign", "generate", "--brokers", "1,9").rc == 1
