"""The errors of an outbound connection. Every text names the peer's host and port."""

from ottla.errors import OttlaError


class LinkError(OttlaError):
    """The base class. `is_retriable`: the same request may succeed on a new connection, but may also have been executed."""

    is_retriable = False

    def __init__(self, address: str, text: str) -> None:
        super().__init__(text)
        self.address = address


class ConnectFailed(LinkError):
    """The connection failed: nothing listens there, the host is unknown, or it timed out. No request was sent.

    An unknown host is not retriable. `is_refused`: the host is up, and no process listens at the port.
    """

    def __init__(self, address: str, text: str, is_retriable: bool = True, is_refused: bool = False) -> None:
        super().__init__(address, text)
        self.is_retriable = is_retriable
        self.is_refused = is_refused


class LinkEnded(LinkError):
    """The connection is over. Requests without an answer may or may not have been executed."""

    is_retriable = True


class RequestTimedOut(LinkError):
    """An answer did not come in time. The link is closed, because answers come in order and no later one could arrive."""

    is_retriable = True


class NoCommonVersion(LinkError):
    """The two sides share no version of an API. The connection stays usable for other APIs."""


class PeerFault(LinkError):
    """The peer broke the protocol, or does not speak it at all."""


class AuthenticationFailed(LinkError):
    """The node refused the login, or proved not to be the node it should be. Trying again without a change does not help."""


class EncryptionFailed(AuthenticationFailed):
    """TLS is impossible: one side does not trust the other, or an option is wrong."""
