"""Shared by the handlers of transactions: error codes translated for older clients."""

from __future__ import annotations

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode

_UNWRITABLE = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})


def code_for(error: KafkaError, version: int, fenced_since: int) -> int:
    """The error code for a client that uses `version`; it knows PRODUCER_FENCED since `fenced_since`."""
    if error.code == ErrorCode.PRODUCER_FENCED and version < fenced_since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error.code in _UNWRITABLE:
        return ErrorCode.UNKNOWN_SERVER_ERROR  # the coordinator's own record is too large, not one of the client's
    return error.code
