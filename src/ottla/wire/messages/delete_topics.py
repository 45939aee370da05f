"""DeleteTopicsRequest, DeleteTopicsResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.ids import ZERO_UUID, Uuid
from ottla.wire.base import EMPTY, Message, Struct


class DeleteTopicState(Struct):
    __slots__ = ("name", "topic_id")

    def __init__(
        self,
        *,
        name: str | None = None,
        topic_id: Uuid = ZERO_UUID,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.unknown_tags = None


class DeleteTopicsRequest(Message):
    __slots__ = ("topics", "topic_names", "timeout_ms")

    def __init__(
        self,
        *,
        topics: list[DeleteTopicState] = EMPTY,
        topic_names: list[str] = EMPTY,
        timeout_ms: int = 0,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.topic_names = [] if topic_names is EMPTY else topic_names
        self.timeout_ms = timeout_ms
        self.unknown_tags = None

    KEY = 20
    SCHEMA = """\
DeleteTopicsRequest key=20 type=request listeners=broker,controller versions=1-6 flexible=4+
  Topics []DeleteTopicState 6+
    Name string 6+ nullable=6+ default=null entity=topicName
    TopicId uuid 6+
  TopicNames []string 0-5 ignorable entity=topicName
  TimeoutMs int32 0+
"""
    STRUCTS = (DeleteTopicState,)


class DeletableTopicResult(Struct):
    __slots__ = ("name", "topic_id", "error_code", "error_message")

    def __init__(
        self,
        *,
        name: str | None = "",
        topic_id: Uuid = ZERO_UUID,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = None


class DeleteTopicsResponse(Message):
    __slots__ = ("throttle_time_ms", "responses")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        responses: list[DeletableTopicResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.responses = [] if responses is EMPTY else responses
        self.unknown_tags = None

    KEY = 20
    SCHEMA = """\
DeleteTopicsResponse key=20 type=response versions=1-6 flexible=4+
  ThrottleTimeMs int32 1+ ignorable
  Responses []DeletableTopicResult 0+
    Name string 0+ nullable=6+ key entity=topicName
    TopicId uuid 6+ ignorable
    ErrorCode int16 0+
    ErrorMessage string 5+ nullable=5+ default=null ignorable
"""
    STRUCTS = (DeletableTopicResult,)
