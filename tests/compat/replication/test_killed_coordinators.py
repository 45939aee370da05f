"""Coordinators are killed while groups of both protocols and transactional producers use them: offsets never go back,
transactions are whole, and nothing hangs."""

from pathlib import Path

import pytest
from tests.support.peers.leaders import await_in_sync, make_replicated
from tests.support.peers.load import QUICK
from tests.support.peers.topics import await_true
from tests.support.recorded.groups import OffsetsWatch, RecordedMember
from tests.support.recorded.run import Recorded
from tests.support.recorded.transactional import RecordedProgram
from tests.support.servers.ottla_cli import run_cli
from tests.support.servers.ottla_cluster import OttlaCluster

from ottla import Admin

ASSIGNMENT = {0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2]}
TOPIC = "transactions"
INTERNAL = ("__consumer_offsets", "__transaction_state")
SETTINGS = {
    "offsets.topic.num.partitions": 3,
    "offsets.topic.replication.factor": 3,
    "transaction.state.log.num.partitions": 3,
    "transaction.state.log.replication.factor": 3,
    "transaction.state.log.min.isr": 2,
}


def kill_coordinators(folder: Path, rounds: int, program_count: int) -> None:
    with OttlaCluster(folder, SETTINGS) as cluster, Admin(cluster.bootstrap, **QUICK) as admin:
        make_replicated(admin, TOPIC, ASSIGNMENT, {"min.insync.replicas": 2})
        bootstrap = cluster.bootstrap
        with Recorded(folder) as run:
            programs = [
                run.add(RecordedProgram(run.history, f"program-{number}", bootstrap, TOPIC, len(ASSIGNMENT)))
                for number in range(program_count)
            ]
            members = [
                run.add(RecordedMember(run.history, f"{protocol}-{number}", bootstrap, TOPIC, f"group-{protocol}", protocol))
                for protocol in ("classic", "consumer")
                for number in range(2)
            ]
            groups = ["group-classic", "group-consumer", *(each.group for each in programs)]
            run.add(OffsetsWatch(run.history, bootstrap, groups))
            run.read("ottla", bootstrap, TOPIC, len(ASSIGNMENT), is_committed=True)

            def await_progress() -> None:
                goals = [each.committed + 2 for each in programs]
                seen = {group: sum(each.seen for each in members if group in each.name) for group in ("classic", "consumer")}

                def is_made() -> bool:
                    assert not run.failures, run.failures[:5]
                    return all(each.committed >= goal for each, goal in zip(programs, goals, strict=True)) and all(
                        sum(each.seen for each in members if group in each.name) > before for group, before in seen.items()
                    )

                await_true(is_made, "progress of every program and group")

            await_progress()
            for number in range(rounds):
                coordinator = (
                    admin.describe_transactions([f"program-{number % program_count}"])[
                        f"program-{number % program_count}"
                    ].coordinator
                    if number % 2
                    else admin.describe_consumer_groups([groups[number // 2 % 2]])[groups[number // 2 % 2]].coordinator
                )
                cluster.kill(coordinator)
                await_progress()
                cluster.start(coordinator)
                for topic in (TOPIC, *INTERNAL):
                    await_in_sync(admin, topic)
            await_progress()
        assert run.report is not None
        replaced = [why for each in programs for why in each.replaced]
        print("\n".join(run.report.lines), f"{len(replaced)} producers replaced: {replaced[:3]}", sep="\n")
        hanging = run_cli("transactions", "find-hanging", "-b", bootstrap, "--max-transaction-timeout", 0, "--json")
        assert hanging.rc == 0, hanging.err
        assert [line for line in hanging.lines if line.strip() not in ("", "[]")] == []


@pytest.mark.slow
def test_two_killed_coordinators(tmp_path: Path) -> None:
    kill_coordinators(tmp_path, 2, 3)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_twenty_killed_coordinators(tmp_path: Path) -> None:
    kill_coordinators(tmp_path, 20, 8)
