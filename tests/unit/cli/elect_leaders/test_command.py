"""`ottla elect-leaders`: exit codes."""

from tests.support.nodes.fake_node import FakeNode
from tests.unit.cli.conftest import RunOttla


def test_exit_code_is_one_if_an_election_failed(ottla: RunOttla, electing: FakeNode) -> None:
    assert ottla("elect-leaders", "orders:0").rc == 0
    assert ottla("elect-leaders", "orders:1").rc == 1
    assert ottla("elect-leaders", "orders").rc == 1
