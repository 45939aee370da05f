"""Many partitions without records: every replica stays in the ISR, and no leader changes."""

import time
from pathlib import Path

import pytest
from tests.support.peers.leaders import await_in_sync, states
from tests.support.peers.load import QUICK
from tests.support.servers.ottla_cluster import OttlaCluster

from ottla import Admin
from ottla.client.admin.topics import NewTopic

pytestmark = pytest.mark.slow

TOPIC, PARTITIONS = "idle", 1000


def stay_idle(folder: Path, seconds: float) -> None:
    # Sessions as in Kafka: this is about replicas that fetch nothing, not about a busy machine.
    with OttlaCluster(folder, {"broker.session.timeout.ms": 9000}) as cluster, Admin(cluster.bootstrap, **QUICK) as admin:
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)]).raise_first()
        await_in_sync(admin, TOPIC)
        before, said = states(admin, TOPIC), cluster.changes()
        time.sleep(seconds)  # the point of the test: for so long nothing happens
        assert states(admin, TOPIC) == before
        assert cluster.changes() == said


@pytest.mark.timeout(600)
def test_isr_of_idle_partitions_does_not_change_in_a_minute(tmp_path: Path) -> None:
    stay_idle(tmp_path, 60)


@pytest.mark.timeout(1500)
def test_isr_of_idle_partitions_does_not_change_in_ten_minutes(tmp_path: Path) -> None:
    stay_idle(tmp_path, 600)
