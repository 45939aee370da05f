"""Finds the refused parts of a response (topics, partitions, settings) for the log and the metrics.

Which APIs are searched is in their descriptors (`apis.py`). Brokers for tests search all (`RequestPipeline.searched`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Any, Final, NamedTuple

from ottla.errors.codes import error_name
from ottla.ids import Uuid, uuid_text
from ottla.wire.api_table import ApiKey
from ottla.wire.base import Message, Struct

_LENGTH_MAX: Final = 500
_COUNTED_MAX: Final = 1000
_NAMES: Final = (
    *("name", "topic", "topic_name", "resource_name", "feature", "group_id", "key", "transactional_id"),
    *("index", "partition_index", "partition"),
)

TopicName = Callable[[Uuid], str | None]
"""The name of the topic with an id; None if there is none."""


class Refusal(NamedTuple):
    """One refused part of a response: its name, and why it was refused."""

    subject: str
    code: int
    message: str | None

    def __str__(self) -> str:
        what = f"{error_name(self.code)} for {self.subject}" if self.subject else error_name(self.code)
        return f"{what}: {self.message}" if self.message else what


def summary_of(response: Message, topic_name: TopicName = lambda _: None) -> str | None:
    """The refused parts of a response, in one line; None if there are none."""
    if response.KEY == ApiKey.PRODUCE and not _has_refused_batches(response):
        return None  # a cheaper check first: nearly all responses end here
    found = refusals_in(response, "", topic_name)
    if code := getattr(response, "error_code", 0):
        found = chain([Refusal("", code, getattr(response, "error_message", None))], found)
    first = next(found, None)
    if first is None:
        return None
    text = str(first)
    if not text.isprintable():  # a peer may send a name with line breaks, to forge lines in the log
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


def refusals_in(part: Struct, subject: str, topic_name: TopicName) -> Iterator[Refusal]:
    """All parts below `part` that have an error code."""
    for field in part.__slots__:
        items = getattr(part, field)
        if not isinstance(items, list):
            continue
        for item in items:
            if isinstance(item, Struct):
                code = getattr(item, "error_code", 0)
                if code:
                    yield Refusal(_subject(item, subject, topic_name), code, getattr(item, "error_message", None))
                else:
                    yield from refusals_in(item, _subject(item, subject, topic_name), topic_name)


def _subject(item: Struct, above: str, topic_name: TopicName) -> str:
    for field in _NAMES:
        found = getattr(item, field, None)
        if found is not None and found != "":
            return f"{above}-{found}" if above else str(found)
    topic_id = getattr(item, "topic_id", None)
    return topic_name(topic_id) or uuid_text(topic_id) if topic_id else above
