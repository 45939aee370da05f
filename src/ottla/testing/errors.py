"""What a broker for tests may raise, beside the `KafkaError` that a request was refused with."""

from ottla.errors import OttlaError


class BrokerFailed(OttlaError):
    """The broker did not start, or stopped by itself: a broken invariant, a failed disk, a child that died."""


class NotRunning(OttlaError):
    """Something was asked of a broker that was not started, or has been stopped or killed."""


class TimedOut(OttlaError, TimeoutError):
    """What was awaited did not come in time. The text says what was there instead."""
