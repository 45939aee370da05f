"""Sentences instead of traces."""

from __future__ import annotations

import os

import pytest

from ottla.errors import TimeoutError
from ottla.spark.errors import SinkError, SourceError, plain_errors, reason_of, sentence_of


def test_errors_of_the_cluster_become_errors_of_the_source() -> None:
    with pytest.raises(SourceError, match="nobody answers"), plain_errors():
        raise TimeoutError("nobody answers")
    with pytest.raises(SinkError, match="nobody answers"), plain_errors(SinkError):
        raise TimeoutError("nobody answers")
    with pytest.raises(KeyError), plain_errors():
        raise KeyError
    assert "SPARK_HIDE_TRACEBACK" not in os.environ  # only workers of Spark hide it


@pytest.mark.parametrize(
    "text",
    [
        "[PYTHON_DATA_SOURCE_ERROR] Failed to plan: ottla.spark.errors.SourceError: there is no topic nope\n SQLSTATE: 38000",
        "[X] Failed: Traceback:\n  File 1\nottla.spark.errors.SparkOptionError: there is no topic nope\n SQLSTATE: 1",
        "failed: ottla.spark.errors.SinkError: there is no topic nope SQLSTATE: 38000",
    ],
)
def test_the_sentence_is_found_in_what_pyspark_raises(text: str) -> None:
    assert sentence_of(RuntimeError(text)) == "there is no topic nope"


def test_other_errors_have_no_sentence_of_ours() -> None:
    assert sentence_of(RuntimeError("division by zero")) is None


def test_reason_of_an_error_of_java_is_its_message() -> None:
    text = "An error occurred while calling None.org.X.\n: java.lang.IllegalStateException: it is full\n\tat org.X"
    assert reason_of(RuntimeError(text)) == "it is full"
    assert reason_of(RuntimeError("one\ntwo")) == "one"
    assert reason_of(RuntimeError()) == "RuntimeError"
