"""Strings and UUIDs."""

from __future__ import annotations

from typing import Any

from ottla.spark import decode

UUID = "0F8FAD5B-D9CB-469F-A165-70867728950E"


def test_uuids_are_texts_of_36_characters(spark: Any) -> None:
    rows = spark.createDataFrame([(UUID.encode(), b"raw\xff"), (b"0f8fad5b", b"x"), (None, None)], "key binary, value binary")
    found = decode(rows, key="uuid", value="bytes").collect()
    assert [row.key for row in found] == [UUID.lower(), None, None]
    assert [row._error and row._error.reason for row in found] == [None, "the key is no UUID: 0f8fad5b", None]
    assert bytes(found[0].value) == b"raw\xff"
