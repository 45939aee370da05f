"""Differences between expected and actual records."""

from ottla.cli.pipeline.test import compare


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
