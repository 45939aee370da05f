"""InitProducerIdRequest, InitProducerIdResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import Message


class InitProducerIdRequest(Message):
    __slots__ = ("transactional_id", "transaction_timeout_ms", "producer_id", "producer_epoch", "enable2_pc", "keep_prepared_txn")

    def __init__(
        self,
        *,
        transactional_id: str | None = "",
        transaction_timeout_ms: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
        enable2_pc: bool = False,
        keep_prepared_txn: bool = False,
    ) -> None:
        self.transactional_id = transactional_id
        self.transaction_timeout_ms = transaction_timeout_ms
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.enable2_pc = enable2_pc
        self.keep_prepared_txn = keep_prepared_txn
        self.unknown_tags = None

    KEY = 22
    SCHEMA = """\
InitProducerIdRequest key=22 type=request listeners=broker versions=0-6 flexible=2+ latest-unstable
  TransactionalId string 0+ nullable=0+ entity=transactionalId
  TransactionTimeoutMs int32 0+
  ProducerId int64 3+ default=-1 entity=producerId
  ProducerEpoch int16 3+ default=-1
  Enable2Pc bool 6+ default=false
  KeepPreparedTxn bool 6+ default=false
"""
    STRUCTS = ()


class InitProducerIdResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "producer_id", "producer_epoch", "ongoing_txn_producer_id", "ongoing_txn_producer_epoch")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id: int = -1,
        producer_epoch: int = 0,
        ongoing_txn_producer_id: int = -1,
        ongoing_txn_producer_epoch: int = -1,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.ongoing_txn_producer_id = ongoing_txn_producer_id
        self.ongoing_txn_producer_epoch = ongoing_txn_producer_epoch
        self.unknown_tags = None

    KEY = 22
    SCHEMA = """\
InitProducerIdResponse key=22 type=response versions=0-6 flexible=2+
  ThrottleTimeMs int32 0+ ignorable
  ErrorCode int16 0+
  ProducerId int64 0+ default=-1 entity=producerId
  ProducerEpoch int16 0+
  OngoingTxnProducerId int64 6+ default=-1 entity=producerId
  OngoingTxnProducerEpoch int16 6+ default=-1
"""
    STRUCTS = ()
