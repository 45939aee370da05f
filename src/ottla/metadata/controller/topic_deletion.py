"""Decides on DeleteTopics, by name or by id. Pure. One record removes the topic and its settings from the image."""

from __future__ import annotations

from collections import Counter

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode
from ottla.ids import ZERO_UUID, Uuid, uuid_text
from ottla.metadata.controller.decision import Asker, Decision
from ottla.metadata.controller.new_partitions import RECORDS_PER_REQUEST_MAX
from ottla.metadata.controller.state import ControllerState
from ottla.metadata.image.topics import Topic
from ottla.wire.base import Message
from ottla.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from ottla.wire.messages.metadata_records import RemoveTopicRecord

_DELETION_CODE_SINCE = 3
_NEWEST = Asker(6)


def delete_topics(
    state: ControllerState, request: DeleteTopicsRequest, now_ms: int, asker: Asker = _NEWEST
) -> Decision[DeleteTopicsResponse]:
    """Delete the topics of a request."""
    if not state.settings.delete_topic_enable:
        raise KafkaError(
            ErrorCode.TOPIC_DELETION_DISABLED if asker.version >= _DELETION_CODE_SINCE else ErrorCode.INVALID_REQUEST,
            "topics cannot be deleted here: delete.topic.enable is false on the controller",
        )
    wanted = [DeleteTopicState(name=name) for name in request.topic_names] + list(request.topics)
    counts = Counter((each.name, each.topic_id) for each in wanted)
    results: list[DeletableTopicResult] = []
    records: list[Message] = []
    by_id = {each.topic_id for each in wanted if each.name is None}
    by_name = {each.name for each in wanted if each.topic_id == ZERO_UUID}
    for name, topic_id in counts:
        result = DeletableTopicResult(name=name, topic_id=topic_id)
        try:
            if counts[(name, topic_id)] > 1 and (name is None or topic_id == ZERO_UUID):
                raise _refused(f"{name or uuid_text(topic_id)} comes more than once in the request")
            topic = _find(state, name, topic_id)
            result.name, result.topic_id = topic.name, topic.id
            if topic.id in by_id and topic.name in by_name:
                raise _refused(f"topic {topic.name} comes by name and by id, which is twice")
            if asker.mutations is not None:
                asker.mutations.pay(len(topic.partitions))
        except KafkaError as error:
            result.error_code, result.error_message = error.code, str(error)
        else:
            records.append(RemoveTopicRecord(topic_id=topic.id))
        results.append(result)
    if len(records) > RECORDS_PER_REQUEST_MAX:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, f"at most {RECORDS_PER_REQUEST_MAX} topics can be deleted at once")
    return Decision(DeleteTopicsResponse(responses=results), records)


def _find(state: ControllerState, name: str | None, topic_id: Uuid) -> Topic:
    topics = state.image.topics
    if name is None:
        if topic_id == ZERO_UUID:
            raise _refused("a topic must be named by its name or by its id, and neither is given")
        if (by_id := topics.by_id.get(topic_id)) is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic with the id {uuid_text(topic_id)}")
        return by_id
    if topic_id != ZERO_UUID:
        raise _refused(f"topic {name} is named by its name and by an id: give one of them")
    if (by_name := topics.by_name.get(name)) is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r} to delete")
    return by_name


def _refused(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, why)
