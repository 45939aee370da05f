"""Counts the elements of a message, to tell whether parsing, handling or encoding it takes long."""

from ottla.wire.base import Struct

MANY_ELEMENTS = 500
"""About 2 ms of work for most messages: more than a request should take of the event loop in one piece."""


def has_many_elements(message: Struct, limit: int = MANY_ELEMENTS) -> bool:
    """Whether the arrays of a message have more than `limit` elements together. Stops counting there."""
    count = 0
    structs = [message]
    while structs:
        struct = structs.pop()
        for field in struct.__slots__:
            items = getattr(struct, field)
            if isinstance(items, list) and items:
                count += len(items)
                if count > limit:
                    return True
                if isinstance(items[0], Struct):
                    structs += items
    return False
