"""The commands of this folder on three nodes of Ottla and of Apache Kafka, in racks: the same outcome on both."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.peers.leaders import await_in_sync, await_known, await_leader, leaders, make_replicated
from tests.support.peers.topics import await_true
from tests.support.servers.ottla_cli import run_cli
from tests.support.servers.three_nodes import ThreeNodes
from tests.support.servers.three_ottla_nodes import ThreeOttlaNodes

from ottla import Admin

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
TOPIC = "orders"


@pytest.fixture(params=["ottla", pytest.param("apache", marks=pytest.mark.kafka)])
def nodes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreeNodes]:
    made = ThreeOttlaNodes() if request.param == "ottla" else ThreeNodes(request.getfixturevalue("apache_kafka"))
    with made as running:
        monkeypatch.setenv("OTTLA_BOOTSTRAP_SERVERS", running.bootstrap)
        yield running


def test_move_election_and_health(nodes: ThreeNodes, tmp_path: Path) -> None:
    with Admin(nodes.bootstrap, request_timeout_ms=10_000) as admin:
        make_replicated(admin, TOPIC, {0: [1, 2], 1: [1, 2], 2: [1, 2]})
        await_known(admin, TOPIC)
        plan = tmp_path / "plan.json"
        generated = run_cli("reassign", "generate", "--topics", TOPIC)
        assert generated.rc == 0, generated.err
        assert "moves 2 replicas of 6" in generated.err
        plan.write_text(generated.out)
        executed = run_cli("reassign", "execute", plan, "--throttle", 50_000_000, "--wait")
        assert executed.rc == 0, executed.err
        assert json.loads(executed.lines[2])["partitions"][0]["log_dirs"] != ["any", "any"]
        verified = run_cli("reassign", "verify", plan)
        assert (verified.rc, verified.lines[1].endswith("is completed.")) == (0, True)
        assert run_cli("reassign", "list").out == "No partition reassignments found.\n"
        await_in_sync(admin, TOPIC)

        elected = run_cli("elect-leaders", "--all", "--json")
        assert elected.rc == 0, elected.err
        preferred = {each.partition: each.replicas[0] for each in admin.describe_topics([TOPIC])[TOPIC].partitions}
        await_true(lambda: leaders(admin, TOPIC) == preferred, "the preferred leaders")
        assert sorted(preferred.values()) == [1, 2, 3]

        assert run_cli("topics", "describe", TOPIC, "--check").rc == 0
        nodes.kill(3)
        await_true(lambda: 3 not in {each for each in leaders(admin, TOPIC).values() if each}, "node 3 to be fenced")
        said = run_cli("topics", "describe", TOPIC, "--check")
        assert said.rc == 1
        assert "broker 3 is down" in said.err
        nodes.start(3)
        await_in_sync(admin, TOPIC)


def test_unclean_election(nodes: ThreeNodes) -> None:
    with Admin(nodes.bootstrap, request_timeout_ms=10_000) as admin:
        make_replicated(admin, TOPIC, {0: [1, 2]})
        nodes.kill(2)
        await_true(lambda: admin.describe_topics([TOPIC])[TOPIC].partitions[0].isr == (1,), "only 1 in sync")
        nodes.start(2)
        await_in_sync(admin, TOPIC)
        nodes.stop(2)
        await_true(lambda: admin.describe_topics([TOPIC])[TOPIC].partitions[0].isr == (1,), "only 1 in sync")
        # Two of three nodes are the quorum: 1 has to be away before 2 comes, and 3 alone cannot notice it.
        nodes.kill(1)
        nodes.start(2)
        await_leader(admin, TOPIC, 0, None)
        said = run_cli("topics", "describe", TOPIC, "--check")
        assert "only broker 1 holds every acknowledged record, and it is down; broker 2 is up, but was out of sync" in said.err
        unclean = run_cli("elect-leaders", f"{TOPIC}:0", "--unclean", "--yes")
        assert unclean.rc == 0, unclean.out + unclean.err
        assert "broker 2 leads with its own log, which ends at offset 0" in unclean.err
        await_leader(admin, TOPIC, 0, 2)
        nodes.start(1)
        await_in_sync(admin, TOPIC)
