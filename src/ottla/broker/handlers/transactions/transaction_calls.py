"""What the handlers of transactional requests share: which codes older clients know."""

from __future__ import annotations

from ottla.errors import KafkaError
from ottla.errors.codes import ErrorCode

_UNWRITABLE = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})


def code_for(error: KafkaError, version: int, fenced_since: int) -> int:
    """The code that a client of `version` is told; it knows PRODUCER_FENCED from `fenced_since` on."""
    if error.code == ErrorCode.PRODUCER_FENCED and version < fenced_since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error.code in _UNWRITABLE:
        return ErrorCode.UNKNOWN_SERVER_ERROR  # it is the coordinator's record that is too large, and not the client's
    return error.code
