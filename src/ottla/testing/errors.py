"""The errors of a test broker, besides the `KafkaError` of a refused request."""

from __future__ import annotations

from ottla.errors import BrokenInvariant, OttlaError


class BrokerFailed(OttlaError):
    """The broker did not start, or stopped by itself: a broken invariant, a failed disk, a child that died."""


class NotRunning(OttlaError):
    """A helper was called on a broker that was not started, or has been stopped or killed."""


class TimedOut(OttlaError, TimeoutError):
    """What was awaited did not come in time. The text says what came instead."""


def without_internals(error: OttlaError) -> OttlaError:
    """`error` and its causes without their tracebacks: a user needs the text and the line that called the helper.

    A broken invariant keeps its traceback, for the bug report.
    """
    seen: set[int] = set()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        if not isinstance(each, BrokenInvariant):
            each.__traceback__ = None
        each = each.__cause__ or (None if each.__suppress_context__ else each.__context__)
    return error
