"""`LinkCounters`: what one link has sent and received, for client metrics. Plain numbers that only grow.

A client that measures more gives its links a subclass: the link calls these methods once per event.
"""

from __future__ import annotations


class LinkCounters:
    """The totals of a link since it was made. Its owner reads them and computes rates."""

    __slots__ = (
        "answers",
        "latency_s_max",
        "latency_s_sum",
        "logins",
        "received_bytes",
        "requests",
        "sent_bytes",
        "throttle_ms_max",
        "throttle_ms_sum",
        "throttled_answers",
    )

    def __init__(self) -> None:
        self.requests = 0
        """Requests sent, with those that are not answered; without handshake and login."""
        self.answers = 0
        self.sent_bytes = 0
        self.received_bytes = 0
        self.latency_s_sum = 0.0
        """From sending to the answer; without the time in the link's queue."""
        self.latency_s_max = 0.0
        self.throttled_answers = 0
        self.throttle_ms_sum = 0
        self.throttle_ms_max = 0
        self.logins = 0
        """SASL logins that succeeded: the first, and one for each reauthentication."""

    def opened(self) -> None:
        """The link is ready for requests."""

    def ended(self) -> None:
        """A link that was `opened` has ended, for any reason."""

    def sent(self, size_bytes: int) -> None:
        """A request of a caller leaves; handshake and logins are counted in `sent_bytes` only."""
        self.requests += 1
        self.sent_bytes += size_bytes

    def received(self, size_bytes: int) -> None:
        """Bytes have come, with those of handshake and logins."""
        self.received_bytes += size_bytes

    def answered(self, latency_s: float, api_key: int) -> None:
        """The answer to a request of this API has come."""
        self.answers += 1
        self.latency_s_sum += latency_s
        if latency_s > self.latency_s_max:
            self.latency_s_max = latency_s

    def logged_in_again(self, latency_s: float | None) -> None:
        """The link has logged in while it was open, because the session would have ended; None: it failed."""

    def throttled(self, throttle_ms: int) -> None:
        self.throttled_answers += 1
        self.throttle_ms_sum += throttle_ms
        self.throttle_ms_max = max(self.throttle_ms_max, throttle_ms)

    def __repr__(self) -> str:
        return f"LinkCounters({', '.join(f'{name}={getattr(self, name)}' for name in self.__slots__)})"
