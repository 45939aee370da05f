"""Names of options, whatever their case."""

from __future__ import annotations

import pytest

from ottla.spark.errors import SparkOptionError
from ottla.spark.options import Options
from ottla.spark.schema import source_schema
from ottla.spark.tables.table_options import TableOptions

KNOWN = ("subscribe", "maxTriggerDelay")


def test_names_are_found_in_any_case() -> None:
    options = Options({"SUBSCRIBE": "a", "maxtriggerdelay": "5s", "kafka.group.id": "g", "path": "x"}, KNOWN, "source")
    assert options.get("subscribe") == "a"
    assert options.duration_ms("maxTriggerDelay", 1) == 5000
    assert options.kafka == {"group.id": "g"}
    assert options.given(*KNOWN) == ["subscribe", "maxTriggerDelay"]


def test_an_unknown_name_gets_the_nearest_one() -> None:
    with pytest.raises(SparkOptionError, match="subscribes is no option of the ottla source; did you mean subscribe"):
        Options({"subscribes": "a"}, KNOWN, "source")
    with pytest.raises(SparkOptionError, match=r"zzz is no option of the ottla sink \(settings of clients begin with kafka"):
        Options({"zzz": "a"}, KNOWN, "sink")


@pytest.mark.parametrize(("text", "ms"), [("5", 5), ("5ms", 5), ("2 s", 2000), ("3M", 180_000), ("1h", 3_600_000)])
def test_durations(text: str, ms: int) -> None:
    assert Options({"maxTriggerDelay": text}, KNOWN, "source").duration_ms("maxTriggerDelay", 1) == ms


def test_numbers_and_words_are_checked() -> None:
    options = Options({"subscribe": "x"}, KNOWN, "source")
    with pytest.raises(SparkOptionError, match="subscribe is 'x': it must be a whole number"):
        options.whole_number("subscribe")
    with pytest.raises(SparkOptionError, match="subscribe is 'x': it must be true or false"):
        options.boolean("subscribe", True)
    with pytest.raises(SparkOptionError, match="subscribe is 'x': it must be a duration"):
        options.duration_ms("subscribe", 1)


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


def test_columns_are_those_of_sparks_own_source() -> None:
    assert source_schema(False).simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,timestampType:int>"
    )
    assert source_schema(True)["headers"].dataType.simpleString() == "array<struct<key:string,value:binary>>"
