"""Errors of brokers are caught by what helps against them."""

import pytest

from ottla import errors
from ottla.errors import exception_of
from ottla.errors.codes import ErrorCode


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.NOT_CONTROLLER, errors.RetriableError),
        (ErrorCode.SASL_AUTHENTICATION_FAILED, errors.AuthenticationError),
        (ErrorCode.UNSUPPORTED_SASL_MECHANISM, errors.AuthenticationError),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, errors.AuthorizationError),
        (ErrorCode.UNSUPPORTED_VERSION, errors.FatalError),
        (ErrorCode.INVALID_CONFIG, errors.InvalidConfigurationError),
        (ErrorCode.NOT_COORDINATOR, errors.RefreshRetriableError),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, errors.RetriableError),
        (ErrorCode.TRANSACTION_ABORTABLE, errors.AbortableError),
        (ErrorCode.PRODUCER_FENCED, errors.ApplicationRecoverableError),
        (ErrorCode.FENCED_INSTANCE_ID, errors.FatalError),
        (ErrorCode.UNKNOWN_PRODUCER_ID, errors.OutOfOrderSequenceError),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, errors.InvalidMetadataError),
        (ErrorCode.NETWORK_EXCEPTION, errors.RefreshRetriableError),
        (ErrorCode.NOT_ENOUGH_REPLICAS, errors.RetriableError),
        (ErrorCode.REQUEST_TIMED_OUT, errors.TimeoutError),
        (ErrorCode.OFFSET_OUT_OF_RANGE, errors.InvalidOffsetError),
        (ErrorCode.RECORD_LIST_TOO_LARGE, errors.InvalidConfigurationError),
    ],
)
def test_error_is_caught_by_its_kind(code: ErrorCode, kind: type[errors.ClientError]) -> None:
    with pytest.raises(kind):
        raise exception_of(code)


def test_coordinator_is_looked_up_again_without_new_metadata() -> None:
    assert not isinstance(exception_of(ErrorCode.NOT_COORDINATOR), errors.InvalidMetadataError)


def test_record_that_is_too_large_is_of_no_kind() -> None:
    error = exception_of(ErrorCode.MESSAGE_TOO_LARGE)
    assert isinstance(error, errors.RecordTooLargeError)
    assert not isinstance(error, errors.RetriableError | errors.AbortableError | errors.FatalError)
