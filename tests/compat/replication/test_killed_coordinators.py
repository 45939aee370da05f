"""Coordinators are killed while groups of both protocols and transactional producers use them: offsets never go back,
transactions are whole, and nothing hangs."""

import time
from collections import Counter
from itertools import cycle
from pathlib import Path

import pytest
from tests.support.peers.leaders import await_in_sync, make_replicated
from tests.support.peers.load import QUICK
from tests.support.peers.topics import await_true
from tests.support.recorded.groups import MEMBERS, OffsetsWatch
from tests.support.recorded.run import Recorded
from tests.support.recorded.transactional import RecordedProgram
from tests.support.servers.ottla_cli import hanging_transactions
from tests.support.servers.ottla_cluster import PATIENT, OttlaCluster

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


LIBRARIES = ("ottla", "confluent")
PROTOCOLS = ("classic", "consumer")
# The machine may be busy: only a hang takes so long.
PROGRESS_S = 600


class Clients:
    """Programs with transactions, and a group of each protocol with a member of each library."""

    def __init__(self, run: Recorded, bootstrap: str, program_count: int) -> None:
        self._run = run
        history = run.history
        self.programs = [
            run.add(RecordedProgram(history, f"program-{number}", bootstrap, TOPIC, len(ASSIGNMENT), library, pause_s=0.2))
            for number, library in zip(range(program_count), cycle(LIBRARIES), strict=False)
        ]
        self._members = {
            f"group-{protocol}": [
                run.add(MEMBERS[library](history, f"{protocol}-{library}", bootstrap, TOPIC, f"group-{protocol}", protocol))
                for library in LIBRARIES
            ]
            for protocol in PROTOCOLS
        }
        self.groups = list(self._members)
        self.watch = run.add(
            OffsetsWatch(history, bootstrap, [*self.groups, *(each.group for each in self.programs if each.group)])
        )
        run.read("ottla", bootstrap, TOPIC, len(ASSIGNMENT), is_committed=True)

    def await_progress(self) -> None:
        """Every program commits two more transactions, and every group reads on."""
        goals = {each.name: each.committed + 2 for each in self.programs}
        seen = {group: self._seen(group) for group in self.groups}

        def late() -> list[str]:
            assert not self._run.failures, self._run.failures[:5]
            waiting = [each.name for each in self.programs if each.committed < goals[each.name]]
            return waiting + [group for group, before in seen.items() if self._seen(group) == before]

        try:
            await_true(lambda: not late(), "progress of every program and group", PROGRESS_S)
        except AssertionError as failure:
            failure.add_note(f"No progress: {', '.join(late())}")
            raise

    def _seen(self, group: str) -> int:
        return sum(each.seen for each in self._members[group])


def kill_coordinators(folder: Path, rounds: int, program_count: int) -> None:
    with OttlaCluster(folder, SETTINGS | PATIENT) as cluster, Admin(cluster.bootstrap, **QUICK) as admin:
        make_replicated(admin, TOPIC, ASSIGNMENT, {"min.insync.replicas": 2})
        bootstrap = cluster.bootstrap
        killed: Counter[str] = Counter()
        with Recorded(folder) as run:
            clients = Clients(run, bootstrap, program_count)
            clients.await_progress()
            for number in range(rounds):
                if number % 2:
                    name = clients.programs[number // 2 % program_count].name
                    coordinator = admin.describe_transactions([name])[name].coordinator
                    killed["of transactions"] += 1
                else:
                    name = clients.groups[number // 2 % len(clients.groups)]
                    coordinator = admin.describe_consumer_groups([name])[name].coordinator
                    killed["of groups"] += 1
                print(f"{time.strftime('%T')} round {number}: node {coordinator} coordinates {name} and is killed", flush=True)
                cluster.kill(coordinator)
                clients.await_progress()
                cluster.start(coordinator)
                for topic in (TOPIC, *INTERNAL):
                    await_in_sync(admin, topic, PROGRESS_S)
            clients.await_progress()
        assert run.report is not None
        replaced = [why for each in clients.programs for why in each.replaced]
        print(*run.report.lines, f"killed coordinators: {dict(killed)}", sep="\n")
        print(f"{clients.watch.answers} looks at offsets; {len(replaced)} producers replaced: {replaced[:3]}")
        assert hanging_transactions(bootstrap) == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_killed_coordinators(tmp_path: Path) -> None:
    kill_coordinators(tmp_path, 2, 4)


@pytest.mark.slow
@pytest.mark.timeout(7200)  # half a minute a round, several on a busy machine
def test_twenty_killed_coordinators(tmp_path: Path) -> None:
    kill_coordinators(tmp_path, 20, 8)
