"""Options of table readers and writers."""

from __future__ import annotations

import pytest

from ottla.spark.errors import SparkOptionError
from ottla.spark.tables.table_options import TableOptions


def test_names_are_known_in_any_case_and_prefixes_are_kept() -> None:
    options = TableOptions(
        {"PATH": "x", "partitionby": " a,b ,a", "storage.Key": "v"}, ["partitionBy"], "the sink", ["storage."]
    )
    assert options.names("partitionBy") == ("a", "b")
    assert options.with_prefix("storage.") == {"Key": "v"}
    assert options.get("path") is None


def test_wrong_options_are_answered_with_what_to_write() -> None:
    with pytest.raises(SparkOptionError, match=r"tabel is no option of the sink; did you mean table\?"):
        TableOptions({"tabel": "x"}, ["table"], "the sink")
    options = TableOptions({"n": "x", "mode": "z"}, ["n", "mode", "url"], "the sink")
    with pytest.raises(SparkOptionError, match="n is 'x': it must be a whole number of at least 1"):
        options.whole_number("n")
    with pytest.raises(SparkOptionError, match="mode is 'z': it must be a or b"):
        options.choice("mode", ["a", "b"], "a")
    with pytest.raises(SparkOptionError, match="the sink needs the option url, such as here"):
        options.needed("url", "here")
