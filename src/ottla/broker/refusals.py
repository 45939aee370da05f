"""What was refused in a response that was not refused as a whole: a topic, a partition, a setting. For log and metrics.

Owns which APIs are looked at. They are those that change something: their clients count on it, and what was refused of one
request in a thousand is hard to find on their side. Reads are left out: that a partition is not here (any more) is everyday
news to consumers, and so is most of what coordinators refuse.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

from ottla.errors.codes import error_name
from ottla.ids import uuid_text
from ottla.wire.api_table import ApiKey
from ottla.wire.base import Message, Struct

REPORTED: Final = frozenset(
    {
        *(ApiKey.PRODUCE, ApiKey.DELETE_RECORDS, ApiKey.ALTER_REPLICA_LOG_DIRS),
        *(ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.CREATE_PARTITIONS),
        *(ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS, ApiKey.UPDATE_FEATURES),
    }
)
_LENGTH_MAX: Final = 500
_COUNTED_MAX: Final = 1000
_NAMES: Final = ("name", "topic_name", "resource_name", "feature", "index", "partition_index")


class Refusal(NamedTuple):
    """One part of a response: what it is about, and why it was refused."""

    subject: str
    code: int
    message: str | None

    def __str__(self) -> str:
        what = f"{error_name(self.code)} for {self.subject}" if self.subject else error_name(self.code)
        return f"{what}: {self.message}" if self.message else what


def summary_of(response: Message) -> str | None:
    """What was refused, in one line; None if nothing was."""
    if response.KEY == ApiKey.PRODUCE and not _has_refused_batches(response):
        return None  # sooner: all but a few are such
    found = refusals_in(response)
    first = next(found, None)
    if first is None:
        return None
    text = str(first)
    if not text.isprintable():  # names that a peer made up, to write lines of its own into the log
        text = repr(text)
    more = sum(1 for _ in islice(found, _COUNTED_MAX))
    if not more:
        return text[:_LENGTH_MAX]
    return f"{text[:_LENGTH_MAX]} (and {more} more)" if more < _COUNTED_MAX else f"{text[:_LENGTH_MAX]} (and many more)"


def _has_refused_batches(response: Any) -> bool:
    for topic in response.responses:
        for partition in topic.partition_responses:
            if partition.error_code:
                return True
    return False


def refusals_in(part: Struct, subject: str = "") -> Iterator[Refusal]:
    """Every part below `part` that has an error code."""
    for field in part.__slots__:
        items = getattr(part, field)
        if not isinstance(items, list):
            continue
        for item in items:
            if isinstance(item, Struct):
                code = getattr(item, "error_code", 0)
                if code:
                    yield Refusal(_subject(item, subject), code, getattr(item, "error_message", None))
                else:
                    yield from refusals_in(item, _subject(item, subject))


def _subject(item: Struct, above: str) -> str:
    for field in _NAMES:
        found = getattr(item, field, None)
        if found is not None and found != "":
            return f"{above}-{found}" if above else str(found)
    topic_id = getattr(item, "topic_id", None)
    return uuid_text(topic_id) if topic_id else above
