"""`ottla elect-leaders`: outcomes as JSON, as lines and as a table."""

import json

from tests.support.nodes.fake_node import FakeNode
from tests.unit.cli.conftest import RunOttla


def test_outcomes_of_partitions(ottla: RunOttla, electing: FakeNode) -> None:
    said = ottla("elect-leaders", "orders", "--json")
    assert said.rc == 1
    assert [(each["partition"], each["result"], each["leaderBefore"], each["leader"]) for each in json.loads(said.out)] == [
        (0, "elected", None, 1),
        (1, "failed", None, None),
    ]
    lines = ottla("elect-leaders", "orders:1").lines
    assert lines[0].startswith("Error completing leader election (PREFERRED) for partition: orders-1: no leader of partition")
    table = ottla("elect-leaders", "orders", columns=100)
    assert table.lines[3].split()[:5] == ["orders", "1", "failed", "none", "none"]
    assert ottla("elect-leaders", "--all").out == "No partition needs an election (preferred).\n"
