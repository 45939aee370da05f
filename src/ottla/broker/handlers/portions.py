"""Handles a request with many elements in portions, as if each came in a request of its own, and joins the responses.

For requests that a coordinator decides in one piece: 60,000 offsets in one decision would hold the event loop for 0.3 s. Their
elements are independent of each other in Kafka's protocol: each has its own error code. Requests behind this one on its
connection wait, so the order is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import Any

from ottla.broker.requests.context import Handled, PendingTask, RequestContext, future_of
from ottla.broker.requests.scheduler import Pauses
from ottla.errors import KafkaError
from ottla.wire.base import Message

PORTION = 500
"""About 5 ms of a coordinator's work."""


class PendingPortions(PendingTask):
    """The response to a request that is handled in portions. They end when the connection has gone.

    Else a client that connects again and commits newer offsets could see the rest of its old request overwrite them.
    """

    def abandon(self) -> None:
        super().abandon()
        self.task.cancel()


async def handle_in_portions(
    context: RequestContext,
    request: Message,
    handle: Callable[[RequestContext, Any], Handled],
    refuse: Callable[[RequestContext, Any, KafkaError], Message | None],
    elements: str,
    inner: str | None = None,
) -> Message:
    """The joined response to the `elements` of a request, such as its topics, with their `inner` elements.

    A portion that is refused as a whole gets the refusal of its elements; what was done before it stays done.
    """
    joined: Any = None
    pauses = Pauses(context)
    for portion in portions_of(getattr(request, elements), inner):
        part = copy(request)
        setattr(part, elements, portion)
        try:
            response: Any = await future_of(handle(context, part))
        except KafkaError as error:
            response = refuse(context, part, error)
        if joined is None:
            joined = response
        else:
            join(joined, response, elements)
        if getattr(response, "error_code", 0):
            break  # an error of the whole request
        await pauses.here()
    assert isinstance(joined, Message)
    return joined


def portions_of(elements: list[Any], inner: str | None) -> Iterator[list[Any]]:
    """`elements` in lists of about `PORTION`, inner elements counted; one with more inner elements is split."""
    portion: list[Any] = []
    room = PORTION
    for element in elements:
        rest = getattr(element, inner) if inner is not None else []
        while len(rest) > room:
            part = copy(element)
            setattr(part, str(inner), rest[:room])
            rest = rest[room:]
            yield [*portion, part]
            portion, room = [], PORTION
        if inner is not None and rest is not getattr(element, inner):
            element = copy(element)
            setattr(element, inner, rest)
        portion.append(element)
        room -= 1 + len(rest)
        if room <= 0:
            yield portion
            portion, room = [], PORTION
    if portion:
        yield portion


def join(joined: Any, response: Any, elements: str) -> None:
    """Append the elements of `response`; one that was split is put together again."""
    before, after = getattr(joined, elements), getattr(response, elements)
    if before and after and hasattr(before[-1], "partitions") and _is_same(before[-1], after[0]):
        before[-1].partitions += after[0].partitions
        after = after[1:]
    before += after
    if error_code := getattr(response, "error_code", 0):
        joined.error_code = error_code


def _is_same(before: Any, after: Any) -> bool:
    return (before.name, getattr(before, "topic_id", None)) == (after.name, getattr(after, "topic_id", None))
