"""`ottla pipeline test`, as far as it needs no Spark; tests/spark/pipelines/test_commands.py has the rest."""

from pathlib import Path

import pytest
from tests.support.servers.ottla_cli import run_cli

from ottla.cli.pipeline.test import check_records, compare, from_bytes, normal, read_cases, to_bytes
from ottla.spark.pipelines.errors import PipelineError


def test_unknown_test_is_refused(tmp_path: Path) -> None:
    run_cli("pipeline", "init", tmp_path / "p")
    said = run_cli("pipeline", "test", tmp_path / "p", "--only", "absent")
    assert said.rc == 2
    assert f"there is no test absent in {tmp_path}/p/tests" in said.err


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


def test_order_and_fields_that_are_not_named_do_not_matter() -> None:
    actual = [{"key": "b", "value": 2, "partition": 0}, {"key": "a", "value": 1, "partition": 1}]
    assert compare("t", [{"value": 1}, {"key": "b", "value": 2}], actual) == []
    assert compare("t", [], []) == []


def test_missing_and_unexpected_records_are_shown_near_each_other() -> None:
    expected = [{"value": {"id": 1, "total": 40}}, {"value": {"id": 2, "total": 5}}]
    actual = [{"value": {"id": 1, "total": 41}, "key": None}, {"value": "something else", "key": None}]
    assert compare("invoices", expected, actual) == [
        "invoices: 2 expected, 2 found",
        '  - {"value": {"id": 1, "total": 40}}',
        '  + {"value": {"id": 1, "total": 41}}',
        '  - {"value": {"id": 2, "total": 5}}',
        '  + {"value": "something else"}',
    ]


def test_a_record_too_many_is_a_difference() -> None:
    assert compare("t", [{"value": 1}], [{"value": 1}, {"value": 1}]) == ["t: 1 expected, 2 found", '  + {"value": 1}']


def test_long_differences_are_cut() -> None:
    lines = compare("t", [], [{"value": number} for number in range(25)])
    assert (len(lines), lines[-1]) == (12, "  … and 15 more")
