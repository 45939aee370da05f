"""Finds the topics and partitions of requests and responses, by the table of `apis.py`; takes them out, and adds answers.

A part of a request that is refused is taken out before the request is handled: it has no effect, and the rest is handled
without it. Its answer, which the API's own `refuse` makes, is added to the response. Access control and the faults that tests
inject both work like this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import TYPE_CHECKING, Any

from ottla.broker.requests.apis import SERVED, TopicFields
from ottla.ids import ZERO_UUID
from ottla.metadata.acls import ResourceType
from ottla.wire.api_table import ApiKey
from ottla.wire.base import Message

if TYPE_CHECKING:
    from ottla.broker.requests.context import RequestContext


def is_about(context: RequestContext, request: Message, topic: str, partition: int | None) -> bool:
    """Whether a request names the topic (and, where it names partitions, the partition)."""
    return any(
        name == topic and (partition is None or index is None or index == partition)
        for name, index in subjects(context, request)
    )


def subjects(context: RequestContext, request: Message) -> Iterator[tuple[str | None, int | None]]:
    """The topics and partitions that a request names; the index is None where it names topics only."""
    fields = SERVED[context.api_key].topics
    if fields is None:
        return
    for attribute in fields.topics:
        entries = getattr(request, attribute)
        if entries is None or (not entries and context.api_key == ApiKey.METADATA and context.version == 0):
            yield from ((name, None) for name in context.services.metadata.image.topics.by_name)
            continue
        for entry in entries:
            name = name_of(context, fields, entry)
            if fields.partitions is None:
                yield name, None
            else:
                yield from ((name, index_of(fields, each)) for each in getattr(entry, fields.partitions))
    if context.api_key == ApiKey.FETCH:
        for wanted in session_partitions(context, request):
            yield wanted.topic or topic_name(context, wanted.topic_id), wanted.index


def session_partitions(context: RequestContext, request: Any) -> list[Any]:
    """The partitions of its session that an incremental Fetch request does not name."""
    if request.session_epoch <= 0:
        return []
    forgotten = {
        (each.topic_id if each.topic_id != ZERO_UUID else each.topic, index)
        for each in request.forgotten_topics_data
        for index in each.partitions
    }
    return [
        wanted
        for (name, index), wanted in context.services.fetch_sessions.wanted_in(request.session_id).items()
        if (name, index) not in forgotten
    ]


def name_of(context: RequestContext, fields: TopicFields, entry: Any) -> str | None:
    """The topic name of an entry of a request; None if it names no topic, or one that does not exist."""
    if isinstance(entry, str):
        return entry
    if getattr(entry, "resource_type", ResourceType.TOPIC) != ResourceType.TOPIC:
        return None
    name: str | None = getattr(entry, fields.name)
    return name or topic_name(context, getattr(entry, "topic_id", ZERO_UUID))


def topic_name(context: RequestContext, topic_id: Any) -> str | None:
    topic = context.services.metadata.topic_by_id(topic_id)
    return None if topic is None else topic.name


def index_of(fields: TopicFields, entry: Any) -> int:
    index: int = getattr(entry, fields.partition_index) if fields.partition_index else entry
    return index


def take_out(
    context: RequestContext, request: Message, fields: TopicFields, is_taken: Callable[[str | None, int | None], bool]
) -> Message | None:
    """Remove topics and partitions from a request; returns a request with just these, or None if there are none."""
    taken_request, has_taken = copy(request), False
    for attribute in fields.topics:
        left: list[Any] = []
        taken: list[Any] = []
        for entry in getattr(request, attribute) or ():
            name = name_of(context, fields, entry)
            if fields.partitions is None:
                (taken if is_taken(name, None) else left).append(entry)
                continue
            into: dict[bool, list[Any]] = {False: [], True: []}
            for each in getattr(entry, fields.partitions):
                into[is_taken(name, index_of(fields, each))].append(each)
            if into[False]:
                left.append(_with_partitions(entry, fields, into[False]))
            if into[True]:
                taken.append(_with_partitions(entry, fields, into[True]))
        if taken:
            has_taken = True
            setattr(request, attribute, left)
        setattr(taken_request, attribute, taken)
    return taken_request if has_taken else None


def _with_partitions(entry: Any, fields: TopicFields, partitions: list[Any]) -> Any:
    assert fields.partitions is not None
    changed = copy(entry)
    setattr(changed, fields.partitions, partitions)
    return changed


def is_empty(request: Message, fields: TopicFields) -> bool:
    """Whether a request has no topics left."""
    return not any(getattr(request, attribute) for attribute in fields.topics)


def add_answers(response: Message, more: Message, fields: TopicFields) -> None:
    """Add the topics of `more` to `response`; partitions of one topic are merged into one entry."""
    answers = getattr(response, fields.answers)
    if fields.are_denied_first:
        answers[:] = [*getattr(more, fields.answers), *answers]
        return
    for entry in getattr(more, fields.answers):
        known = None
        if fields.answer_partitions is not None:
            known = next((each for each in answers if _same_topic(each, entry, fields)), None)
        if known is None or fields.answer_partitions is None:
            answers.append(entry)
        else:
            getattr(known, fields.answer_partitions).extend(getattr(entry, fields.answer_partitions))


def _same_topic(one: Any, other: Any, fields: TopicFields) -> bool:
    return getattr(one, fields.name) == getattr(other, fields.name) and getattr(one, "topic_id", None) == getattr(
        other, "topic_id", None
    )
