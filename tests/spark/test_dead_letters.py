"""Dead letters: the rows that are made of bad records, and how they are sent."""

from __future__ import annotations

import base64
import json
from typing import Any

import pyarrow as pa
import pytest

from ottla.spark import decode
from ottla.spark.dead_letters import dead_letters, send, to_topics
from ottla.spark.errors import SinkError, SparkOptionError
from ottla.testing import Broker


def letter(**parts: Any) -> str:
    """A letter as Spark writes it: bytes as base64, nulls left out."""
    encoded = {name: base64.b64encode(value).decode() for name, value in parts.items() if name != "headers"}
    headers = [{"key": name, "value": base64.b64encode(value).decode()} for name, value in parts.get("headers", [])]
    return json.dumps({**encoded, "headers": headers})


def test_letters_that_are_not_null_are_sent(shared_broker: Broker, topic: str) -> None:
    letters = [None, letter(key=b"k", value=b"v\xff", headers=[("a", b"b")]), None, letter()]
    client = {"bootstrap.servers": shared_broker.bootstrap_servers}
    assert send(pa.array(letters, pa.string()), topic, client).to_pylist() == [True, False, True, False]
    found = [(each.key, each.value, list(each.headers)) for each in shared_broker.records(topic)]
    assert sorted(found, key=str) == [(None, None, []), (b"k", b"v\xff", [("a", b"b")])]


def test_a_letter_that_is_not_stored_fails_the_task(shared_broker: Broker, topic: str) -> None:
    letters = pa.array([letter(value=b"v" * 2_000_000)], pa.string())
    for size_bytes in ("1000000", "4000000"):  # refused by the producer, and by the broker
        client = {"bootstrap.servers": shared_broker.bootstrap_servers, "max.request.size": size_bytes}
        with pytest.raises(SinkError, match=f"was not stored in the topic {topic}: "):
            send(letters, topic, client)


def test_rows_without_a_position_have_the_reason_alone(spark: Any) -> None:
    rows = decode(spark.createDataFrame([(b"{",)], "value binary"), value="json", schema="a int")
    (row,) = dead_letters(rows).collect()
    assert (row.key, bytes(row.value)) == (None, b"{")
    assert [header.key for header in row.headers] == ["ottla.error.reason", "ottla.error.field"]


def test_rows_that_were_not_decoded_are_refused(spark: Any) -> None:
    with pytest.raises(SparkOptionError, match="to_topics takes what decode returns in mode keep"):
        to_topics(spark.range(1), topic="a", dead_letter_topic="b")
