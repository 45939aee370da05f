"""CreatePartitionsRequest, CreatePartitionsResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class CreatePartitionsAssignment(Struct):
    __slots__ = ("broker_ids",)

    def __init__(
        self,
        *,
        broker_ids: list[int] = EMPTY,
    ) -> None:
        self.broker_ids = [] if broker_ids is EMPTY else broker_ids
        self.unknown_tags = None


class CreatePartitionsTopic(Struct):
    __slots__ = ("name", "count", "assignments")

    def __init__(
        self,
        *,
        name: str = "",
        count: int = 0,
        assignments: list[CreatePartitionsAssignment] | None = EMPTY,
    ) -> None:
        self.name = name
        self.count = count
        self.assignments = [] if assignments is EMPTY else assignments
        self.unknown_tags = None


class CreatePartitionsRequest(Message):
    __slots__ = ("topics", "timeout_ms", "validate_only")

    def __init__(
        self,
        *,
        topics: list[CreatePartitionsTopic] = EMPTY,
        timeout_ms: int = 0,
        validate_only: bool = False,
    ) -> None:
        self.topics = [] if topics is EMPTY else topics
        self.timeout_ms = timeout_ms
        self.validate_only = validate_only
        self.unknown_tags = None

    KEY = 37
    SCHEMA = """\
CreatePartitionsRequest key=37 type=request listeners=broker,controller versions=0-3 flexible=2+
  Topics []CreatePartitionsTopic 0+
    Name string 0+ key entity=topicName
    Count int32 0+
    Assignments []CreatePartitionsAssignment 0+ nullable=0+
      BrokerIds []int32 0+ entity=brokerId
  TimeoutMs int32 0+
  ValidateOnly bool 0+
"""
    STRUCTS = (CreatePartitionsTopic, CreatePartitionsAssignment)


class CreatePartitionsTopicResult(Struct):
    __slots__ = ("name", "error_code", "error_message")

    def __init__(
        self,
        *,
        name: str = "",
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.name = name
        self.error_code = error_code
        self.error_message = error_message
        self.unknown_tags = None


class CreatePartitionsResponse(Message):
    __slots__ = ("throttle_time_ms", "results")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: list[CreatePartitionsTopicResult] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is EMPTY else results
        self.unknown_tags = None

    KEY = 37
    SCHEMA = """\
CreatePartitionsResponse key=37 type=response versions=0-3 flexible=2+
  ThrottleTimeMs int32 0+
  Results []CreatePartitionsTopicResult 0+
    Name string 0+ entity=topicName
    ErrorCode int16 0+
    ErrorMessage string 0+ nullable=0+ default=null
"""
    STRUCTS = (CreatePartitionsTopicResult,)
