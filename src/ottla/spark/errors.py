"""Errors of the Spark source and sink: one sentence that names the option, topic or row.

PySpark wraps an error of a Python data source in its own, with the whole Python traceback. `plain_errors` makes it show the
sentence alone, and `sentence_of` finds the sentence again in what PySpark raises.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ottla.errors import KafkaError


class SparkOptionError(ValueError):
    """An option of the reader or writer cannot be used as it is."""


class SourceError(Exception):
    """The source cannot read what it was asked for."""


class SinkError(Exception):
    """The sink cannot write a row."""


_SENTENCE = re.compile(r"^.*?ottla\.spark\.errors\.(?:SparkOptionError|SourceError|SinkError): (.+?)(?: SQLSTATE: \w+)*$", re.M)


@contextmanager
def plain_errors(kind: type[Exception] = SourceError) -> Iterator[None]:
    """Around what Spark calls: errors of the cluster become `kind`, and Spark shows a sentence without a traceback."""
    try:
        yield
    except KafkaError as error:
        _hide_traceback()
        raise kind(str(error)) from None
    except (SparkOptionError, SourceError, SinkError):
        _hide_traceback()
        raise


def _hide_traceback() -> None:
    """PySpark reads this variable when it reports the error, and ends the worker afterwards: nothing else is affected."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if spec is not None and spec.name.startswith("pyspark."):
        os.environ["SPARK_HIDE_TRACEBACK"] = "1"


def sentence_of(error: BaseException) -> str | None:
    """The sentence of ours in an exception of PySpark; None if the error is not ours."""
    found = _SENTENCE.search(str(error))
    return None if found is None else found[1].strip()


def reason_of(error: BaseException) -> str:
    """The line of an exception that says why: of one of Java's, its message without class and call."""
    text = str(error).strip()
    java = re.search(r"^: ([\w.$]+): (.+)$", text, re.MULTILINE)
    return java[2] if java else text.partition("\n")[0] or type(error).__name__
