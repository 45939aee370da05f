"""Waiting for brokers that do not answer."""

from __future__ import annotations

import pytest

from ottla.errors import TimeoutError
from ottla.spark.errors import SourceError
from ottla.spark.source.lookup import ask, find_partitions
from ottla.spark.source.options import source_options

GIVEN = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t", "fetchOffset.retryIntervalMs": "1"}


def test_a_call_is_tried_until_it_succeeds(caplog: pytest.LogCaptureFixture) -> None:
    limits_s: list[float] = []

    def call(limit_s: float) -> str:
        limits_s.append(limit_s)
        if len(limits_s) < 3:
            raise TimeoutError("nobody answers")
        return "found"

    assert ask(source_options(GIVEN, is_streaming=False), "its topics", call) == "found"
    assert limits_s[0] == 5.0 < limits_s[1] < limits_s[2]
    texts = [record.getMessage() for record in caplog.records]
    assert len(texts) == 2
    assert texts[0] == "waiting for a broker at 127.0.0.1:1 to tell its topics, for 0 s already: nobody answers"


def test_a_broker_that_is_not_there_is_an_error_in_the_end() -> None:
    given = {**GIVEN, "kafka.default.api.timeout.ms": "150", "kafka.request.timeout.ms": "100", "fetchOffset.numRetries": "2"}
    with pytest.raises(SourceError, match=r"127\.0\.0\.1:1 did not tell the partitions of t within 0\.3 s.*start the broker"):
        find_partitions(source_options(given, is_streaming=False))
