"""Failures of connections as errors: what can be retried, and what never left."""

import pytest

from ottla.client.failures import kafka_error
from ottla.errors import KafkaError, NetworkError, TimeoutError, UnsupportedVersionError
from ottla.link import ConnectFailed, LinkEnded, LinkError, NoCommonVersion, RequestTimedOut
from ottla.wire.base import EncodeError


@pytest.mark.parametrize(
    ("failure", "kind", "is_retriable", "is_unsent"),
    [
        (ConnectFailed("h:1", "nothing listens"), NetworkError, True, True),
        (LinkEnded("h:1", "closed"), NetworkError, True, False),
        (RequestTimedOut("h:1", "no answer"), TimeoutError, True, False),
        (NoCommonVersion("h:1", "too old"), UnsupportedVersionError, False, False),
        (EncodeError("Field", "too large"), UnsupportedVersionError, False, False),
    ],
)
def test_a_failure_becomes_the_error_of_its_kind(
    failure: LinkError | EncodeError, kind: type[KafkaError], is_retriable: bool, is_unsent: bool
) -> None:
    error = kafka_error(failure)
    assert type(error) is kind
    assert (error.is_retriable, error.is_unsent) == (is_retriable, is_unsent)
    assert str(error) == str(failure)
