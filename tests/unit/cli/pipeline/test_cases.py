"""Tests of pipelines, as files."""

from pathlib import Path

import pytest

from ottla.cli.pipeline.test import check_records, from_bytes, normal, read_cases, to_bytes
from ottla.spark.pipelines.errors import PipelineError


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_files_are_read_by_topic(tmp_path: Path) -> None:
    write(tmp_path / "tests" / "b" / "given" / "orders.jsonl", '{"value": 1}\n\n{"value": null}\n')
    write(tmp_path / "tests" / "b" / "expected" / "a.b.jsonl", "")
    write(tmp_path / "tests" / "a" / "expected" / "x.jsonl", "")
    first, second = read_cases(tmp_path)
    assert (first.name, first.given, second.name) == ("a", {}, "b")
    assert (second.given, second.expected) == ({"orders": [{"value": 1}, {"value": None}]}, {"a.b": []})


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("expected/x.jsonl", "{", "x.jsonl line 1 is no JSON"),
        ("expected/x.jsonl", "5", 'x.jsonl line 1 is 5: write an object, such as {"value": 5}'),
        ("given/x.jsonl", "", "has no expected/NAME.jsonl"),
    ],
)
def test_mistake_names_file_and_line(tmp_path: Path, name: str, text: str, sentence: str) -> None:
    write(tmp_path / "tests" / "a" / name, text)
    with pytest.raises(PipelineError) as raised:
        read_cases(tmp_path)
    assert sentence in str(raised.value)


def test_pipeline_without_tests_says_how_to_write_one(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"has no tests: write tests/NAME/given/TOPIC.jsonl"):
        read_cases(tmp_path)


def test_field_outside_of_value_is_refused() -> None:
    with pytest.raises(PipelineError, match="with the field amount: it may have key, value, headers, partition, timestamp"):
        check_records("a", "orders", [{"amount": 5}])


def test_texts_stay_texts_and_the_rest_is_json() -> None:
    assert [to_bytes(each) for each in (None, "a", 5, {"b": [1]})] == [None, b"a", b"5", b'{"b": [1]}']
    assert [from_bytes(each) for each in (None, b"a", b"5", b'{"b":[1]}', b"{x", b"\xff")] == [
        None,
        "a",
        "5",
        {"b": [1]},
        "{x",
        "\\xff",
    ]
    assert (normal(5), normal("5")) == ("5", "5")
