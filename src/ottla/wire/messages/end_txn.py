"""EndTxnRequest, EndTxnResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import Message


class EndTxnRequest(Message):
    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "committed")

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        committed: bool = False,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.committed = committed
        self.unknown_tags = None

    KEY = 26
    SCHEMA = """\
EndTxnRequest key=26 type=request listeners=broker versions=0-5 flexible=3+
  TransactionalId string 0+ entity=transactionalId
  ProducerId int64 0+ entity=producerId
  ProducerEpoch int16 0+
  Committed bool 0+
"""
    STRUCTS = ()


class EndTxnResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "producer_id", "producer_epoch")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.unknown_tags = None

    KEY = 26
    SCHEMA = """\
EndTxnResponse key=26 type=response versions=0-5 flexible=3+
  ThrottleTimeMs int32 0+
  ErrorCode int16 0+
  ProducerId int64 5+ default=-1 ignorable entity=producerId
  ProducerEpoch int16 5+ default=-1 ignorable
"""
    STRUCTS = ()
