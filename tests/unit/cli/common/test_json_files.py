"""JSON files of users: read from a path or standard input; every mistake is one sentence that shows the right form."""

from pathlib import Path
from typing import Any

import click
import pytest

from ottla.cli.common.json_files import parse_json, read_json, typed

FORM = '{"names": ["a"]}'


def names(content: Any) -> list[str]:
    return [typed(each, str) for each in content["names"]]


def test_file_is_parsed(tmp_path: Path) -> None:
    file = tmp_path / "names.json"
    file.write_text('{"version": 1, "names": ["ä", "b"]}', encoding="utf-8")
    assert read_json(str(file), FORM, names) == ["ä", "b"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ("[]", "does not have the form expected: "),
        ("{}", "does not have the form expected (names is missing): "),
        ('{"names": [1]}', "does not have the form expected: "),
        ('{"names": 1}', "does not have the form expected: "),
        ('{"names": [], "version": 2}', "has version 2: only version 1 is supported"),
    ],
)
def test_mistake_is_wrong_usage(text: str, said: str) -> None:
    with pytest.raises(click.UsageError) as caught:
        parse_json(text, "names.json", FORM, names)
    assert said in str(caught.value)
    assert str(caught.value).startswith("names.json ")
    assert "version" in said or FORM in str(caught.value)


def test_file_that_cannot_be_read_is_wrong_usage(tmp_path: Path) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "absent", tmp_path, binary):
        with pytest.raises(click.UsageError, match="cannot be read: "):
            read_json(str(path), FORM, names)


def test_booleans_are_no_numbers() -> None:
    with pytest.raises(TypeError):
        typed(True, int)
