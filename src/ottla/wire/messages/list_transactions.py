"""ListTransactionsRequest, ListTransactionsResponse. Generated from the schema table by tools/generate_messages.py: do not edit."""

from __future__ import annotations

from ottla.wire.base import EMPTY, Message, Struct


class ListTransactionsRequest(Message):
    __slots__ = ("state_filters", "producer_id_filters", "duration_filter", "transactional_id_pattern")

    def __init__(
        self,
        *,
        state_filters: list[str] = EMPTY,
        producer_id_filters: list[int] = EMPTY,
        duration_filter: int = -1,
        transactional_id_pattern: str | None = None,
    ) -> None:
        self.state_filters = [] if state_filters is EMPTY else state_filters
        self.producer_id_filters = [] if producer_id_filters is EMPTY else producer_id_filters
        self.duration_filter = duration_filter
        self.transactional_id_pattern = transactional_id_pattern
        self.unknown_tags = None

    KEY = 66
    SCHEMA = """\
ListTransactionsRequest key=66 type=request listeners=broker versions=0-2 flexible=0+
  StateFilters []string 0+
  ProducerIdFilters []int64 0+ entity=producerId
  DurationFilter int64 1+ default=-1
  TransactionalIdPattern string 2+ nullable=2+ default=null
"""
    STRUCTS = ()


class TransactionState(Struct):
    __slots__ = ("transactional_id", "producer_id", "transaction_state")

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        transaction_state: str = "",
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.transaction_state = transaction_state
        self.unknown_tags = None


class ListTransactionsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "unknown_state_filters", "transaction_states")

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        unknown_state_filters: list[str] = EMPTY,
        transaction_states: list[TransactionState] = EMPTY,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.unknown_state_filters = [] if unknown_state_filters is EMPTY else unknown_state_filters
        self.transaction_states = [] if transaction_states is EMPTY else transaction_states
        self.unknown_tags = None

    KEY = 66
    SCHEMA = """\
ListTransactionsResponse key=66 type=response versions=0-2 flexible=0+
  ThrottleTimeMs int32 0+
  ErrorCode int16 0+
  UnknownStateFilters []string 0+
  TransactionStates []TransactionState 0+
    TransactionalId string 0+ entity=transactionalId
    ProducerId int64 0+ entity=producerId
    TransactionState string 0+
"""
    STRUCTS = (TransactionState,)
