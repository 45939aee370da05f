"""What can go wrong on a connection that we opened. Every text names the other side's host and port."""

from ottla.errors import OttlaError


class LinkError(OttlaError):
    """The root. `is_retriable`: the same request may succeed on a new connection; it may also have been done already."""

    is_retriable = False

    def __init__(self, address: str, text: str) -> None:
        super().__init__(text)
        self.address = address


class ConnectFailed(LinkError):
    """No connection could be had: nobody listens, the name is unknown, or the time was up. Nothing was sent.

    A name that is unknown now will be so in a moment: then it is not retriable.
    """

    def __init__(self, address: str, text: str, is_retriable: bool = True) -> None:
        super().__init__(address, text)
        self.is_retriable = is_retriable


class LinkEnded(LinkError):
    """The connection is over; what was asked and not answered may have been done or not."""

    is_retriable = True


class RequestTimedOut(LinkError):
    """An answer did not come in time, and the connection was given up: answers come in order, so no later one would either."""

    is_retriable = True


class NoCommonVersion(LinkError):
    """The two sides share no version of an API. The connection stays usable for others."""


class PeerFault(LinkError):
    """The other side broke the protocol, or does not speak it at all."""
