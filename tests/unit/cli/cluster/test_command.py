"""The `cluster` verb."""

from tests.unit.cli.conftest import RunOttla


def test_help_lists_the_actions(ottla: RunOttla) -> None:
    said = ottla("cluster", "--help")
    assert said.rc == 0
    assert all(action in said.out for action in ("describe", "id", "unregister", "Examples:"))


def test_a_misspelt_action_gets_the_right_one(ottla: RunOttla) -> None:
    said = ottla("cluster", "descibe")
    assert said.rc == 2
    assert "did you mean describe?" in said.err
