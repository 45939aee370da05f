"""Events of the verifiable clients: one JSON object a line, with the fields and the order of fields of Kafka's tools."""

from __future__ import annotations

import json
import sys
import time
from asyncio import AbstractEventLoop
from collections.abc import Callable
from typing import Any

from ottla.cli.common.escaping import escape_json
from ottla.errors import KafkaError

_ERRORS = "org.apache.kafka.common.errors."
_JAVA_NAMES = {
    "AbortableError": "org.apache.kafka.common.KafkaException",
    "BufferExhaustedError": "org.apache.kafka.clients.producer.BufferExhaustedException",
    "ClientError": "org.apache.kafka.common.KafkaException",
    "FatalError": "org.apache.kafka.common.KafkaException",
    "IllegalStateError": "java.lang.IllegalStateException",
    "InvalidRecordError": "org.apache.kafka.common.InvalidRecordException",
    "InvalidRegularExpressionError": f"{_ERRORS}InvalidRegularExpression",
    "KafkaError": "org.apache.kafka.common.KafkaException",
    "OffsetMetadataTooLargeError": f"{_ERRORS}OffsetMetadataTooLarge",
    "RequestTimedOutError": f"{_ERRORS}TimeoutException",
}
"""Java's names of the errors whose name is not ours with Exception for Error."""


def java_class(error: KafkaError) -> str:
    """The class of an error as Java prints it, which is what scripts look for."""
    name = type(error).__name__
    return "class " + (_JAVA_NAMES.get(name) or f"{_ERRORS}{name.removesuffix('Error')}Exception")


class Events:
    """Prints events, which leave together at the end of a turn of the loop. `on_closed`: the output has no reader any more."""

    def __init__(self, loop: AbstractEventLoop, on_closed: Callable[[], object]) -> None:
        self._loop = loop
        self._on_closed = on_closed
        self._is_flush_due = False
        self.is_closed = False
        """Whether the output has no reader any more."""

    def print(self, name: str, **fields: Any) -> None:
        """Print one event."""
        if self.is_closed:
            return
        event = {"timestamp": time.time_ns() // 1_000_000, "name": name, **fields}
        try:
            sys.stdout.write(escape_json(json.dumps(event, ensure_ascii=False, separators=(",", ":"))) + "\n")
        except BrokenPipeError:
            self._close()
            return
        if not self._is_flush_due:
            self._is_flush_due = True
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Let what was printed leave now."""
        self._is_flush_due = False
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            self._close()

    def _close(self) -> None:
        self.is_closed = True
        self._on_closed()
