"""What is asked on a terminal."""

import click
import pytest

from ottla.cli.common import output
from ottla.errors import OttlaError


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Somebody at a terminal, and what they will answer."""
    answers: list[bool] = []
    monkeypatch.setattr(output, "can_ask", lambda: True)
    monkeypatch.setattr(click, "confirm", lambda question, err: answers.pop(0))
    return answers


def test_a_no_ends_the_command_and_says_so(answers: list[bool]) -> None:
    answers += [True, False]
    output.confirm("Delete it?", yes=False)
    with pytest.raises(OttlaError, match="nothing was changed"):
        output.confirm("Delete it?", yes=False)


def test_who_has_said_yes_is_not_asked(answers: list[bool]) -> None:
    output.confirm("Delete it?", yes=True)
    assert answers == []
