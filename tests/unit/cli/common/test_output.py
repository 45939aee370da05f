"""Confirmation questions on a terminal, and lines that fit it."""

import click
import pytest

from ottla.cli.common import output
from ottla.errors import OttlaError


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """A terminal with a user, and their next answers."""
    answers: list[bool] = []
    monkeypatch.setattr(output, "can_ask", lambda: True)
    monkeypatch.setattr(click, "confirm", lambda question, err: answers.pop(0))
    return answers


def test_answer_no_ends_the_command_with_a_message(answers: list[bool]) -> None:
    answers += [True, False]
    output.confirm("Delete it?", yes=False)
    with pytest.raises(OttlaError, match="nothing was changed"):
        output.confirm("Delete it?", yes=False)


def test_yes_flag_skips_the_question(answers: list[bool]) -> None:
    output.confirm("Delete it?", yes=True)
    assert answers == []


def test_line_is_cut_off_at_the_width() -> None:
    assert (output.fit("abcdef", 4), output.fit("abc", 4)) == ("abc…", "abc")
