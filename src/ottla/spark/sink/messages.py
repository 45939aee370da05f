"""What tasks send to the driver when they are done."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql.datasource import WriterCommitMessage

from ottla.spark.sink.protocol import TaskResult


@dataclass
class Written(WriterCommitMessage):
    """A task of an at-least-once writer has stored its rows."""

    rows: int


@dataclass
class Held(WriterCommitMessage):
    """A task of an exactly-once writer has left its transaction open."""

    result: TaskResult
