"""Errors for parts of a request: the failing part is removed before the request is handled; its error is added to the response.

A failing part has no effect: a failed partition of a Produce request is not appended to, a failed topic is not created. The
rest of the request is handled without it. Two APIs are different: a Fetch response also has partitions of the session that the
request does not name, and a Metadata request without topics returns all of them. There the response is changed instead.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, cast

from ottla.broker.requests.apis import SERVED, load_handler
from ottla.broker.requests.context import RequestContext
from ottla.broker.requests.interception import Interception
from ottla.broker.requests.topics import (
    add_answers,
    is_empty,
    session_partitions,
    subjects,
    take_out,
    topic_name,
)
from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import ZERO_UUID
from ottla.wire.apis import ApiKey
from ottla.wire.base import Message

_TOPIC_IDS_SINCE: Final = 13
_OF_SESSIONS: Final = (
    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
    ErrorCode.INVALID_FETCH_SESSION_EPOCH,
    ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
)
"""Errors of a whole Fetch response. All others go into its partitions, where clients look for them."""


class Failure(NamedTuple):
    """An error for a topic or partition; None means all."""

    topic: str | None
    partition: int | None
    error: KafkaError

    def meets(self, topic: str | None, index: int | None) -> bool:
        return self.topic in (None, topic) and (self.partition is None or index is None or self.partition == index)


def fail_parts(context: RequestContext, request: Message, failures: list[Failure], delay_s: float) -> Interception:
    """How to handle a request that some of `failures` meet."""
    if context.api_key == ApiKey.FETCH:
        return _fail_fetch(context, request, failures, delay_s)
    if context.api_key == ApiKey.METADATA:
        return _fail_metadata(context, request, failures, delay_s)
    fields = SERVED[context.api_key].topics
    whole = next((failure for failure in failures if failure.topic is None), None)
    if whole is not None or fields is None:
        return Interception(delay_s=delay_s, answer=(whole or failures[0]).error)
    module = load_handler(context.api_key)
    assert module is not None, "what is intercepted has a handler"
    taken = [
        (part, failure.error) for failure in failures if (part := take_out(context, request, fields, failure.meets)) is not None
    ]
    if context.api_key == ApiKey.PRODUCE and cast(Any, request).acks == 0:
        # With acks=0 there is no response; a broker reports an error by closing the connection.
        return Interception(delay_s=delay_s, is_handled=not is_empty(request, fields), is_lost=True)
    refusals = [cast(Message, module.refuse(context, part, error)) for part, error in taken]

    def add_refusals(response: Message) -> Message:
        for refusal in refusals:
            add_answers(response, refusal, fields)
        return response

    def refuse(error: KafkaError) -> Message:
        return cast(Message, module.refuse(context, request, error))

    if not is_empty(request, fields):
        return Interception(delay_s=delay_s, rewrite=add_refusals, refuse=refuse)
    first, *refusals = refusals
    return Interception(delay_s=delay_s, answer=add_refusals(first))


# Fetch


def _fail_fetch(context: RequestContext, request: Any, failures: list[Failure], delay_s: float) -> Interception:
    for failure in failures:
        if failure.error.code in _OF_SESSIONS:
            return Interception(delay_s=delay_s, answer=failure.error)
    errors: dict[tuple[Any, int], int] = {}
    for key, name in _fetched(context, request).items():
        met = next((failure for failure in failures if failure.meets(name, key[1])), None)
        if met is not None:
            errors[key] = met.error.code
    if not errors:
        return Interception(delay_s=delay_s)
    request.max_wait_ms = 0  # a response with an error is sent at once

    def put_errors(response: Message) -> Message:
        _put_fetch_errors(context, response, errors)
        return response

    return Interception(delay_s=delay_s, rewrite=put_errors)


def _fetched(context: RequestContext, request: Any) -> dict[tuple[Any, int], str | None]:
    """The partitions that a request fetches: (topic id or name, as its version has it, and index) → topic name."""
    by_id = context.version >= _TOPIC_IDS_SINCE
    fetched = {
        (wanted.topic_id if by_id else wanted.topic, wanted.index): wanted.topic or topic_name(context, wanted.topic_id)
        for wanted in session_partitions(context, request)
    }
    for topic in request.topics:
        name = topic_name(context, topic.topic_id) if by_id else topic.topic
        fetched |= {(topic.topic_id if by_id else topic.topic, each.partition): name for each in topic.partitions}
    return fetched


def _put_fetch_errors(context: RequestContext, response: Any, errors: dict[tuple[Any, int], int]) -> None:
    from ottla.wire.messages.fetch import FetchableTopicResponse, PartitionData

    if response.error_code:
        return
    by_id = context.version >= _TOPIC_IDS_SINCE
    for entry in response.responses:
        topic = entry.topic_id if by_id else entry.topic
        entry.partitions = [data for data in entry.partitions if (topic, data.partition_index) not in errors]
    response.responses = [entry for entry in response.responses if entry.partitions]
    for (topic, index), code in errors.items():
        data = PartitionData(partition_index=index, error_code=code, high_watermark=-1, last_stable_offset=-1)
        data.log_start_offset = -1
        data.aborted_transactions = None
        data.records = b""
        entry = FetchableTopicResponse(topic="" if by_id else topic, topic_id=topic if by_id else ZERO_UUID, partitions=[data])
        response.responses.append(entry)
    for key, wanted in context.services.fetch_sessions.wanted_in(response.session_id).items():
        if key in errors:
            wanted.sent_high_watermark = -1  # after an error the next response has all fields of the partition again


# Metadata


def _fail_metadata(context: RequestContext, request: Any, failures: list[Failure], delay_s: float) -> Interception:
    """Only topics fail: the list of brokers is always in the response, as with a real error of a topic."""
    fields = SERVED[ApiKey.METADATA].topics
    assert fields is not None
    named = [name for name, _ in subjects(context, request)]
    whole = next((failure.error.code for failure in failures if failure.topic is None), None)
    if request.topics:
        of_topics = [failure for failure in failures if failure.partition is None]
        # Removed before the request is handled, so that no topic is created.
        parts = [
            (part, failure.error.code)
            for failure in of_topics
            if (part := take_out(context, request, fields, failure.meets)) is not None
        ]
    else:
        parts = []

    def put_errors(response: Any) -> Message:
        from ottla.wire.messages.metadata import MetadataResponseTopic

        if parts and not request.topics:
            response.topics = []  # in version 0 an empty list requests all topics
        for topic in response.topics:
            _put_topic_errors(topic, failures)
        for part, code in parts:
            for asked in cast(Any, part).topics:
                name = asked.name or topic_name(context, asked.topic_id)
                response.topics.append(MetadataResponseTopic(name=name, topic_id=asked.topic_id, error_code=code))
        if whole is not None and not named:
            response.error_code = whole
        return cast(Message, response)

    return Interception(delay_s=delay_s, rewrite=put_errors)


def _put_topic_errors(topic: Any, failures: list[Failure]) -> None:
    for failure in failures:
        if not failure.meets(topic.name, None):
            continue
        if failure.partition is None:
            topic.error_code, topic.partitions = failure.error.code, []
        for partition in topic.partitions:
            if partition.partition_index == failure.partition:
                partition.error_code, partition.leader_id = failure.error.code, -1
