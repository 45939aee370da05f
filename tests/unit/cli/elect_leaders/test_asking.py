"""`ottla elect-leaders --unclean`: what is asked before."""

from typing import Any

import pytest
from tests.support.nodes.fake_node import FakeNode
from tests.unit.cli.conftest import RunOttla

from ottla.wire.messages.elect_leaders import ElectLeadersRequest
from ottla.wire.messages.list_offsets import ListOffsetsRequest


def test_unclean_election_is_held_only_after_yes(ottla: RunOttla, electing: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.cli.common.output.can_ask", lambda: True)
    asked_questions = []

    def answer_no(question: str, **flags: Any) -> bool:
        asked_questions.append(question)
        return False

    monkeypatch.setattr("click.confirm", answer_no)
    said = ottla("elect-leaders", "orders:0", "--unclean")
    assert said.rc == 1
    assert "nothing was changed" in said.err
    assert asked_questions == ["Elect leaders out of sync for orders-0, and lose these records?"]
    assert not electing.asked_for(ElectLeadersRequest)


@pytest.mark.parametrize(
    "arguments",
    [
        ("elect-leaders", "orders:0", "--unclean"),
        ("elect-leaders", "orders:0", "--election-type", "unclean"),
        ("leader-election", "--election-type", "UNCLEAN", "--topic", "orders", "--partition", "0"),
    ],
)
def test_unclean_election_without_a_terminal_needs_yes(ottla: RunOttla, electing: FakeNode, arguments: tuple[str, ...]) -> None:
    said = ottla(*arguments)
    assert (said.rc, said.err.splitlines()[-1]) == (1, "ottla: nothing was changed: add --yes to say that you mean it")
    assert not electing.asked_for(ElectLeadersRequest)
    assert ottla(*arguments, "--yes").rc == 0
    assert electing.asked_for(ElectLeadersRequest)


def test_new_leader_and_its_log_end_are_named(ottla: RunOttla, electing: FakeNode) -> None:
    warning = ottla("elect-leaders", "orders:0", "--unclean").err.splitlines()[0]
    assert warning.startswith("ottla: an unclean election makes broker 1 lead orders-0, and loses what was acknowledged while")
    assert ". The log of broker 1 ends at offset 57. " in warning
    (asked,) = electing.asked_for(ListOffsetsRequest)
    assert asked.replica_id == -2, "brokers that do not lead answer only this one"
