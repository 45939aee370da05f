"""The verb: its actions, help with examples, and Kafka's name of it."""

import pytest
from tests.unit.cli.reassign.conftest import RunOttla

from ottla.cli.reassign.command import ACTIONS


def test_help_has_examples(ottla: RunOttla) -> None:
    assert "ottla reassign generate --brokers 1,2,3,4 > plan.json" in ottla("reassign", "--help").out
    for action in ACTIONS:
        said = ottla("reassign", action, "--help")
        assert (said.rc, "Examples:" in said.out) == (0, True)


@pytest.mark.parametrize("verb", ["reassign", "reassign-partitions"])
def test_kafkas_spelling(ottla: RunOttla, verb: str) -> None:
    assert ottla(verb, "--bootstrap-server", "localhost:9092", "--list").out == "No partition reassignments found.\n"
