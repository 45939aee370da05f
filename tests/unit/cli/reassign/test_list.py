"""`ottla reassign list`: Kafka's lines, a table, JSON."""

import json

from tests.unit.cli.reassign.conftest import FakeCluster, RunOttla


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
