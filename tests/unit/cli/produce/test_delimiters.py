r"""Escapes such as `\0` in the text of flags."""

import click
import pytest

from ottla.cli.produce.lines import parse_delimiter, unescape


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (None, b"\n"),
        (r"\n", b"\n"),
        (r"\r\n", b"\r\n"),
        (r"\0", b"\0"),
        (r"\x1eZ", b"\x1eZ"),
        (r"\\n", b"\\n"),
        ("::", b"::"),
        ("→", "→".encode()),
        ("\udcff", b"\xff"),
    ],
)
def test_escapes(text: str | None, meant: bytes) -> None:
    assert parse_delimiter(text) == meant


@pytest.mark.parametrize("text", ["", "\\", r"\q", r"\x1", r"\xzz"])
def test_empty_and_unknown_escapes_are_refused(text: str) -> None:
    with pytest.raises(click.UsageError, match="--delimiter"):
        parse_delimiter(text)


def test_flag_is_named() -> None:
    with pytest.raises(click.UsageError, match="--key-separator has an unknown escape"):
        unescape("\\q", "--key-separator")
