"""DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import EMPTY, Message, Struct


class DeleteShareGroupOffsetsRequestTopic(Struct):
    __slots__ = ("topic_name",)

    def __init__(
        self,
        *,
        topic_name: str = "",
    ) -> None:
        self.topic_name = topic_name
        self.unknown_tags = None


class DeleteShareGroupOffsetsRequest(Message):
    __slots__ = ("group_id", "topics")

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: list[DeleteShareGroupOffsetsRequestTopic] = EMPTY,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is EMPTY else topics
        self.unknown_tags = None

    KEY = 92
    SCHEMA = """\
DeleteShareGroupOffsetsRequest key=92 type=request listeners=broker versions=0 flexible=0+
  GroupId string 0+ entity=groupId
  Topics []DeleteShareGroupOffsetsRequestTopic 0+
    TopicName string 0+ entity=topicName
"""
    STRUCTS = (DeleteShareGroupOffsetsRequestTopic,)


class DeleteShareGroupOffsetsResponseTopic(Struct):
    __slots__ = ("topic_name", "topic_id", "error_code", "error_message")

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: Uuid = ZERO_UUID,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = None


class DeleteShareGroupOffsetsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "responses")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        responses: list[DeleteShareGroupOffsetsResponseTopic] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.responses = [] if responses is EMPTY else responses
        self.unknown_tags = None

    KEY = 92
    SCHEMA = """\
DeleteShareGroupOffsetsResponse key=92 type=response versions=0 flexible=0+
  ThrottleTimeMs int32 0+
  ErrorCode int16 0+
  ErrorMessage string 0+ nullable=0+ default=null
  Responses []DeleteShareGroupOffsetsResponseTopic 0+
    TopicName string 0+ entity=topicName
    TopicId uuid 0+
    ErrorCode int16 0+
    ErrorMessage string 0+ nullable=0+ default=null
"""
    STRUCTS = (DeleteShareGroupOffsetsResponseTopic,)
