"""Dead letters: records that could not be handled, as they are sent to another topic. Headers say where each came from and why.

The headers have the names that Kafka Connect gives them, so that its tools read them too. Connect has none for the timestamp:
its dead letters keep the record's. Ours have the time of the failure, because retention could delete the letter of an old
record at once.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ottla.client.consumer.record import ConsumerRecord

PREFIX: Final = "__connect.errors."
_TEXT_CHARS_MAX: Final = 1_000
_TRACE_CHARS_MAX: Final = 8_000
"""The beginning of a long text and the end of a long trace are kept: letters must not grow beyond what a topic takes."""

Headers = list[tuple[str, bytes | None]]


class DeadLetters(NamedTuple):
    """Where records go that could not be handled: the topic, and the producer (of bytes) that sends them there."""

    producer: Any
    """`ottla.Producer` for `ottla.Worker`, `aio.Producer` for `aio.Worker`, without serializers."""
    topic: str | Callable[[ConsumerRecord[Any, Any]], str]
    """The name, or a function that returns it for a record with raw key and value."""

    def topic_for(self, record: ConsumerRecord[Any, Any]) -> str:
        """The topic of a record's letter."""
        return self.topic if isinstance(self.topic, str) else self.topic(record)


def headers_of(record: ConsumerRecord[Any, Any], error: BaseException, attempts: int, group_id: str | None) -> Headers:
    """The headers of a record's letter: its own, without those of an earlier letter, and what happened."""
    shown = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "consumer.group": group_id or "",
        "attempts": attempts,
        "exception.class.name": _class_name(error),
        "exception.message": str(error)[:_TEXT_CHARS_MAX],
        "exception.stacktrace": "".join(traceback.format_exception(error))[-_TRACE_CHARS_MAX:],
    }
    kept = [(key, value) for key, value in record.headers if not key.startswith(PREFIX)]
    return kept + [(PREFIX + name, str(value).encode(errors="backslashreplace")) for name, value in shown.items()]


def _class_name(error: BaseException) -> str:
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
