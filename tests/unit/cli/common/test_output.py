"""Confirmation questions on a terminal, and lines that fit it."""

import json
import unicodedata

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cli.common import output
from ottla.cli.common.output import escape, escape_bytes, escape_json
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


BIDI_CONTROLS = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()))


def is_unsafe(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or character in BIDI_CONTROLS


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("orders-é-日本", "orders-é-日本"),
        ("a\nb\tc\0", r"a\nb\tc\x00"),
        ("\x1b[2J\x7f\x9b31m", r"\x1b[2J\x7f\x9b31m"),
        ("\u202eevil\u2066\u200f\u2028", r"\u202eevil\u2066\u200f\u2028"),
        ("\udcff", r"\udcff"),
        ("C:\\new", "C:\\new"),
    ],
)
def test_control_characters_are_escaped(text: str, shown: str) -> None:
    assert escape(text) == shown


def test_bytes_that_are_not_utf_8_are_escaped() -> None:
    assert escape_bytes(b"ok \xff\x1b \xc2\x9b") == r"ok \xff\x1b \x9b"


@given(ANY_TEXT)
def test_nothing_unsafe_is_left_in_text(text: str) -> None:
    assert not any(map(is_unsafe, escape(text)))


@given(ANY_TEXT)
def test_nothing_unsafe_is_left_in_json_and_it_decodes_to_the_same(text: str) -> None:
    shown = escape_json(json.dumps({text: [text]}, ensure_ascii=False))
    assert not any(map(is_unsafe, shown))
    assert json.loads(shown) == {text: [text]}
