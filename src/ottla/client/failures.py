"""Turns failures of connections into the errors that machines and users see."""

from __future__ import annotations

from ottla.errors import AuthenticationError, KafkaError, NetworkError, TimeoutError, UnsupportedVersionError
from ottla.link import AuthenticationFailed, ConnectFailed, LinkError, NoCommonVersion, RequestTimedOut
from ottla.wire.base import EncodeError


def kafka_error(failure: LinkError | EncodeError) -> KafkaError:
    """The `KafkaError` for a request that got no answer."""
    if isinstance(failure, NoCommonVersion | EncodeError):
        return UnsupportedVersionError(str(failure))
    if isinstance(failure, RequestTimedOut):
        return TimeoutError(str(failure))
    if isinstance(failure, AuthenticationFailed):
        return AuthenticationError(str(failure))
    return NetworkError(str(failure), is_unsent=isinstance(failure, ConnectFailed))
