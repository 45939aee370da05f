"""AllocateProducerIdsRequest, AllocateProducerIdsResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import Message


class AllocateProducerIdsRequest(Message):
    __slots__ = ("broker_id", "broker_epoch")

    def __init__(
        self,
        *,
        broker_id: int = 0,
        broker_epoch: int = -1,
    ) -> None:
        self.broker_id = broker_id
        self.broker_epoch = broker_epoch
        self.unknown_tags = None

    KEY = 67
    SCHEMA = """\
AllocateProducerIdsRequest key=67 type=request listeners=controller versions=0 flexible=0+
  BrokerId int32 0+ entity=brokerId
  BrokerEpoch int64 0+ default=-1
"""
    STRUCTS = ()


class AllocateProducerIdsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "producer_id_start", "producer_id_len")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id_start: int = 0,
        producer_id_len: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.producer_id_start = producer_id_start
        self.producer_id_len = producer_id_len
        self.unknown_tags = None

    KEY = 67
    SCHEMA = """\
AllocateProducerIdsResponse key=67 type=response versions=0 flexible=0+
  ThrottleTimeMs int32 0+
  ErrorCode int16 0+
  ProducerIdStart int64 0+ entity=producerId
  ProducerIdLen int32 0+
"""
    STRUCTS = ()
