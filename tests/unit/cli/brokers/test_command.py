"""The `brokers` verb."""

from tests.unit.cli.conftest import RunOttla


def test_help_lists_the_actions(ottla: RunOttla) -> None:
    said = ottla("brokers", "--help")
    assert said.rc == 0
    assert all(action in said.out for action in ("list", "describe", "Examples:"))
