"""AddOffsetsToTxnRequest, AddOffsetsToTxnResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import Message


class AddOffsetsToTxnRequest(Message):
    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "group_id")

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        group_id: str = "",
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.group_id = group_id
        self.unknown_tags = None

    KEY = 25
    SCHEMA = """\
AddOffsetsToTxnRequest key=25 type=request listeners=broker versions=0-4 flexible=3+
  TransactionalId string 0+ entity=transactionalId
  ProducerId int64 0+ entity=producerId
  ProducerEpoch int16 0+
  GroupId string 0+ entity=groupId
"""
    STRUCTS = ()


class AddOffsetsToTxnResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.unknown_tags = None

    KEY = 25
    SCHEMA = """\
AddOffsetsToTxnResponse key=25 type=response versions=0-4 flexible=3+
  ThrottleTimeMs int32 0+
  ErrorCode int16 0+
"""
    STRUCTS = ()
