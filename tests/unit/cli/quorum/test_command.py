"""The `quorum` verb."""

from tests.unit.cli.conftest import RunOttla


def test_help_lists_the_actions(ottla: RunOttla) -> None:
    said = ottla("quorum", "--help")
    assert said.rc == 0
    assert all(action in said.out for action in ("describe", "add", "remove", "Examples:"))


def test_kafkas_name_of_the_tool_works(ottla: RunOttla) -> None:
    assert ottla("metadata-quorum", "describe", "--status").rc == 0
