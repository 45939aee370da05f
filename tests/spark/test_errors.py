"""Sentences instead of traces."""

from __future__ import annotations

import os

import pytest

from ottla.env.real.tls_errors import protocol_mismatch
from ottla.errors import TimeoutError
from ottla.spark.errors import SinkError, SourceError, plain_errors, reason_of, sentence_of
from ottla.testing import Broker


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


def test_server_without_ottla_is_told_what_to_install() -> None:
    found = sentence_of(RuntimeError("[DATA_SOURCE_NOT_FOUND] Failed to find the data source: ottla. Make sure the provider"))
    assert found is not None
    assert 'pip install "ottla[spark]" in the Python of the Spark Connect server' in found
    assert sentence_of(RuntimeError("[DATA_SOURCE_NOT_FOUND] Failed to find the data source: kafka. Make sure")) is None


def test_error_of_a_connect_server_without_ottla_says_what_to_install() -> None:
    """In the exception that a plain program gets."""
    from pyspark.errors.exceptions.connect import AnalysisException

    import ottla.spark  # noqa: F401  # wraps PySpark's errors

    text = "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: {}. Make sure the provider name is correct. SQLSTATE: 42K02"
    ours, theirs = (
        AnalysisException(message=text.format(name), server_stacktrace="at x", display_server_stacktrace=True)
        for name in ("ottla", "kafka")
    )
    assert str(ours).endswith(
        'ottla. It is not installed there: run pip install "ottla[spark]" in the Python of the Spark Connect server or, '
        "without one, in the Python that PYSPARK_PYTHON names (python3 by default), and start it again"
    )
    assert sentence_of(ours) is not None
    assert str(theirs) == text.format("kafka") + "\n\nJVM stacktrace:\nat x"


def test_other_errors_have_no_sentence_of_ours() -> None:
    assert sentence_of(RuntimeError("division by zero")) is None


def test_reason_of_an_error_of_java_is_its_message() -> None:
    text = "An error occurred while calling None.org.X.\n: java.lang.IllegalStateException: it is full\n\tat org.X"
    assert reason_of(RuntimeError(text)) == "it is full"
    assert reason_of(RuntimeError("one\ntwo")) == "one"
    assert reason_of(RuntimeError()) == "RuntimeError"


def test_port_of_another_protocol_is_named(tls_port: int) -> None:
    here = f"127.0.0.1:{tls_port}"
    assert protocol_mismatch({"bootstrap.servers": here, "security.protocol": "SASL_PLAINTEXT"}) == (
        f"{here} speaks TLS: set kafka.security.protocol to SASL_SSL, or give the address of a plain listener"
    )
    assert protocol_mismatch({"bootstrap.servers": here, "security.protocol": "SSL"}) == ""
    assert protocol_mismatch({"bootstrap.servers": "127.0.0.1:1"}) == ""
    with Broker() as broker:
        plain = {"bootstrap.servers": broker.bootstrap_servers}
        assert protocol_mismatch(plain) == ""
        assert protocol_mismatch({**plain, "security.protocol": "SSL"}).startswith(f"{broker.bootstrap_servers} speaks no TLS")
