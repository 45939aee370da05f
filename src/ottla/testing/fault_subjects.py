"""Finds the topics and partitions of requests and responses: a table says which attributes of each API hold them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.ids import ZERO_UUID
from ottla.wire.apis import APIS, ApiKey
from ottla.wire.base import Message

if TYPE_CHECKING:
    from ottla.broker.requests.context import RequestContext

_TOPIC_RESOURCE: Final = 2


class Shape(NamedTuple):
    """Names of the attributes of an API that hold topics and partitions."""

    topics: tuple[str, ...]
    """In the request: its lists of topics."""
    name: str
    """In a topic: its name. An entry may also be the name itself, or have an id instead."""
    partitions: str | None
    """In a topic: its partitions, each an index or an entry with one; None: the API has topics only."""
    partition_index: str
    answers: str
    """In the response: its topics."""
    answer_partitions: str | None
    """In a topic of the response: its partitions."""


SHAPES: Final[dict[int, Shape]] = {
    ApiKey.PRODUCE: Shape(("topic_data",), "name", "partition_data", "index", "responses", "partition_responses"),
    ApiKey.FETCH: Shape(("topics",), "topic", "partitions", "partition", "responses", "partitions"),
    ApiKey.LIST_OFFSETS: Shape(("topics",), "name", "partitions", "partition_index", "topics", "partitions"),
    ApiKey.OFFSET_COMMIT: Shape(("topics",), "name", "partitions", "partition_index", "topics", "partitions"),
    ApiKey.TXN_OFFSET_COMMIT: Shape(("topics",), "name", "partitions", "partition_index", "topics", "partitions"),
    ApiKey.METADATA: Shape(("topics",), "name", None, "", "topics", None),
    ApiKey.CREATE_TOPICS: Shape(("topics",), "name", None, "", "topics", None),
    ApiKey.DELETE_TOPICS: Shape(("topics", "topic_names"), "name", None, "", "responses", None),
    ApiKey.DELETE_RECORDS: Shape(("topics",), "name", "partitions", "partition_index", "topics", "partitions"),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Shape(("topics",), "topic", "partitions", "partition", "topics", "partitions"),
    ApiKey.DESCRIBE_CONFIGS: Shape(("resources",), "resource_name", None, "", "results", None),
    ApiKey.ALTER_CONFIGS: Shape(("resources",), "resource_name", None, "", "responses", None),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Shape(("resources",), "resource_name", None, "", "responses", None),
    ApiKey.CREATE_PARTITIONS: Shape(("topics",), "name", None, "", "results", None),
    ApiKey.ELECT_LEADERS: Shape(
        ("topic_partitions",), "topic", "partitions", "", "replica_election_results", "partition_result"
    ),
    ApiKey.DESCRIBE_PRODUCERS: Shape(("topics",), "name", "partition_indexes", "", "topics", "partitions"),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: Shape(("topics",), "name", None, "", "topics", None),
}

_TOPICS_WITH_PARTITIONS_IN_ANSWERS: Final = (ApiKey.METADATA,)
"""APIs whose requests have topics only, and whose responses have their partitions."""


def check_subject(api_key: int | None, topic: str | None, partition: int | None) -> None:
    """`ValueError` if requests of the API cannot name a topic or partition."""
    __tracebackhide__ = True  # for pytest: a test that fails shows the line that called us
    if topic is None:
        if partition is not None:
            raise ValueError(f"partition {partition} of which topic? Give topic=… too")
        return
    if api_key is None:
        return
    name, shape = APIS[api_key].name, SHAPES.get(api_key)
    if shape is None:
        known = ", ".join(APIS[key].name for key in SHAPES)
        raise ValueError(f"{name} requests name no topics. Leave topic=… out, or choose one of {known}")
    if partition is not None and shape.partitions is None and api_key not in _TOPICS_WITH_PARTITIONS_IN_ANSWERS:
        raise ValueError(f"{name} requests are about whole topics: leave partition={partition} out")


def is_about(context: RequestContext, request: Message, topic: str, partition: int | None) -> bool:
    """Whether a request names the topic (and, where it names partitions, the partition)."""
    return any(
        name == topic and (partition is None or index is None or index == partition)
        for name, index in subjects(context, request)
    )


def subjects(context: RequestContext, request: Message) -> Iterator[tuple[str | None, int | None]]:
    """The topics and partitions that a request names; the index is None where it names topics only."""
    shape = SHAPES.get(context.api_key)
    if shape is None:
        return
    for attribute in shape.topics:
        entries = getattr(request, attribute)
        if entries is None or (not entries and context.api_key == ApiKey.METADATA and context.version == 0):
            yield from ((name, None) for name in context.services.metadata.image.topics.by_name)
            continue
        for entry in entries:
            name = name_of(context, shape, entry)
            if shape.partitions is None:
                yield name, None
            else:
                yield from ((name, index_of(shape, each)) for each in getattr(entry, shape.partitions))
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


def name_of(context: RequestContext, shape: Shape, entry: Any) -> str | None:
    """The topic name of an entry of a request; None if it names no topic, or one that does not exist."""
    if isinstance(entry, str):
        return entry
    if getattr(entry, "resource_type", _TOPIC_RESOURCE) != _TOPIC_RESOURCE:
        return None
    name: str | None = getattr(entry, shape.name)
    return name or topic_name(context, getattr(entry, "topic_id", ZERO_UUID))


def topic_name(context: RequestContext, topic_id: Any) -> str | None:
    topic = context.services.metadata.topic_by_id(topic_id)
    return None if topic is None else topic.name


def index_of(shape: Shape, entry: Any) -> int:
    index: int = getattr(entry, shape.partition_index) if shape.partition_index else entry
    return index


def take_out(
    context: RequestContext, request: Message, shape: Shape, is_taken: Callable[[str | None, int | None], bool]
) -> Message | None:
    """Remove topics and partitions from a request; returns a request with just these, or None if there are none."""
    taken_request, has_taken = copy(request), False
    for attribute in shape.topics:
        left: list[Any] = []
        taken: list[Any] = []
        for entry in getattr(request, attribute) or ():
            name = name_of(context, shape, entry)
            if shape.partitions is None:
                (taken if is_taken(name, None) else left).append(entry)
                continue
            into: dict[bool, list[Any]] = {False: [], True: []}
            for each in getattr(entry, shape.partitions):
                into[is_taken(name, index_of(shape, each))].append(each)
            if into[False]:
                left.append(_with_partitions(entry, shape, into[False]))
            if into[True]:
                taken.append(_with_partitions(entry, shape, into[True]))
        if taken:
            has_taken = True
            setattr(request, attribute, left)
        setattr(taken_request, attribute, taken)
    return taken_request if has_taken else None


def _with_partitions(entry: Any, shape: Shape, partitions: list[Any]) -> Any:
    assert shape.partitions is not None
    changed = copy(entry)
    setattr(changed, shape.partitions, partitions)
    return changed


def is_empty(request: Message, shape: Shape) -> bool:
    """Whether a request has no topics left."""
    return not any(getattr(request, attribute) for attribute in shape.topics)


def add_answers(response: Message, more: Message, shape: Shape) -> None:
    """Add the topics of `more` to `response`; partitions of one topic are merged into one entry."""
    answers = getattr(response, shape.answers)
    for entry in getattr(more, shape.answers):
        known = None
        if shape.answer_partitions is not None:
            known = next((each for each in answers if _same_topic(each, entry, shape)), None)
        if known is None or shape.answer_partitions is None:
            answers.append(entry)
        else:
            getattr(known, shape.answer_partitions).extend(getattr(entry, shape.answer_partitions))


def _same_topic(one: Any, other: Any, shape: Shape) -> bool:
    return getattr(one, shape.name) == getattr(other, shape.name) and getattr(one, "topic_id", None) == getattr(
        other, "topic_id", None
    )
