"""Errors of the cluster are caught by what helps against them."""

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
    ],
)
def test_error_is_caught_by_its_kind(code: ErrorCode, kind: type[errors.ClientError]) -> None:
    with pytest.raises(kind):
        raise exception_of(code)
