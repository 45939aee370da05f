"""Errors of groups and transactions are caught by what helps against them."""

import pytest

from ottla import errors
from ottla.errors import exception_of
from ottla.errors.codes import ErrorCode


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.NOT_COORDINATOR, errors.RefreshRetriableError),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, errors.RetriableError),
        (ErrorCode.TRANSACTION_ABORTABLE, errors.AbortableError),
        (ErrorCode.PRODUCER_FENCED, errors.ApplicationRecoverableError),
        (ErrorCode.FENCED_INSTANCE_ID, errors.FatalError),
        (ErrorCode.UNKNOWN_PRODUCER_ID, errors.OutOfOrderSequenceError),
    ],
)
def test_error_is_caught_by_its_kind(code: ErrorCode, kind: type[errors.ClientError]) -> None:
    with pytest.raises(kind):
        raise exception_of(code)


def test_coordinator_is_looked_up_again_without_new_metadata() -> None:
    assert not isinstance(exception_of(ErrorCode.NOT_COORDINATOR), errors.InvalidMetadataError)
