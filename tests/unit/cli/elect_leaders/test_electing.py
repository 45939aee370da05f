"""`ottla elect-leaders`: an election, and what it has lost."""

from tests.support.nodes.fake_node import FakeNode
from tests.unit.cli.conftest import RunOttla


def test_unclean_election_says_what_is_lost(ottla: RunOttla, electing: FakeNode) -> None:
    said = ottla("elect-leaders", "orders:0", "--unclean", "--yes")
    assert said.rc == 0
    assert said.out == "Successfully completed leader election (UNCLEAN) for partitions orders-0\n"
    before, after = said.err.splitlines()
    assert before.startswith("ottla: an unclean election makes broker 1 lead orders-0, and loses what was acknowledged while")
    assert after == (
        "ottla: orders-0: broker 1 leads with its own log, which ends at offset 57: what was acknowledged from there on is "
        "lost, and replicas that come back cut it off"
    )
