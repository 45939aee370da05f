"""`ottla elect-leaders --unclean`: what is asked before."""

from typing import Any

import pytest
from tests.support.nodes.fake_node import FakeNode
from tests.unit.cli.conftest import RunOttla

from ottla.wire.messages.elect_leaders import ElectLeadersRequest


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
