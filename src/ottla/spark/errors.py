"""Errors of the Spark source and sink: one sentence that names the option, topic or row.

PySpark wraps an error of a Python data source in its own, with the whole Python traceback. `plain_errors` makes it show the
sentence alone, and `sentence_of` finds the sentence again in what PySpark raises.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ottla.env.real.tls_errors import protocol_mismatch
from ottla.errors import KafkaError, RetriableError


class SparkOptionError(ValueError):
    """An option of the reader or writer cannot be used as it is."""


class SourceError(Exception):
    """The source cannot read what it was asked for."""


class SinkError(Exception):
    """The sink cannot write a row."""


_SENTENCE = re.compile(r"^.*?ottla\.spark\.errors\.(?:SparkOptionError|SourceError|SinkError): (.+?)(?: SQLSTATE: \w+)*$", re.M)

_NOT_INSTALLED = re.compile(r"DATA_SOURCE_NOT_FOUND\] Failed to find the data source: (ottla\w*)")
_INSTALL = (
    'run pip install "ottla[spark]" in the Python of the Spark Connect server or, without one, in the Python that '
    "PYSPARK_PYTHON names (python3 by default), and start it again"
)


@contextmanager
def plain_errors(kind: type[Exception] = SourceError, client: Mapping[str, str] | None = None) -> Iterator[None]:
    """Around what Spark calls: errors of the cluster become `kind`, and Spark shows a sentence without a traceback.

    With the settings of the client, a cluster that does not answer is tried with TLS, or without.
    """
    try:
        yield
    except (KafkaError, SparkOptionError, SourceError, SinkError) as error:
        _hide_traceback()
        reason = error if isinstance(error, KafkaError) else error.__cause__
        if client is not None and isinstance(reason, RetriableError) and (mismatch := protocol_mismatch(client)):
            raise kind(mismatch) from None
        if isinstance(error, KafkaError):
            raise kind(str(error)) from None
        raise


def _hide_traceback() -> None:
    """PySpark reads this variable when it reports the error, and ends the worker afterwards: nothing else is affected."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if spec is not None and spec.name.startswith("pyspark."):
        os.environ["SPARK_HIDE_TRACEBACK"] = "1"


def sentence_of(error: BaseException) -> str | None:
    """The sentence of ours in an exception of PySpark; None if the error is not ours."""
    if missing := _NOT_INSTALLED.search(str(error)):
        return f"Spark does not know the format {missing[1]}: {_INSTALL}"
    found = _SENTENCE.search(str(error))
    return None if found is None else found[1].strip()


def own_message(message: str) -> str | None:
    """The message of an error of Spark's Java, if it is ours. A Spark without Ottla is told what to install."""
    if missing := _NOT_INSTALLED.search(message):
        return f"{message[: missing.end()]}. It is not installed there: {_INSTALL}"
    return message if _SENTENCE.search(message) else None


def reason_of(error: BaseException) -> str:
    """The line of an exception that says why: of one of Java's, its message without class and call."""
    text = str(error).strip()
    java = re.search(r"^: ([\w.$]+): (.+)$", text, re.MULTILINE)
    return java[2] if java else text.partition("\n")[0] or type(error).__name__
