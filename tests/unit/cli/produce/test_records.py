"""Columns and rows of records."""

from ottla.cli.produce.lines import Columns, Row


def test_rows_of_columns() -> None:
    assert Columns([b"a", None]).rows() == [Row(b"a"), Row(None)]
    assert Columns([b"a", b"b"], [b"k", None]).rows() == [Row(b"a", b"k"), Row(b"b")]
    assert Columns([b"a"], None, [(("h", b"1"),)]).rows() == [Row(b"a", None, (("h", b"1"),))]
