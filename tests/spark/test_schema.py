"""The columns of the source."""

from __future__ import annotations

from ottla.spark.schema import source_schema


def test_columns_are_those_of_sparks_own_source() -> None:
    assert source_schema(False).simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,timestampType:int>"
    )
    assert source_schema(True)["headers"].dataType.simpleString() == "array<struct<key:string,value:binary>>"
