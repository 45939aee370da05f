"""`check_loop`: an asyncio client belongs to the event loop that it was first used on. Its connections and timers are there."""

from __future__ import annotations

import asyncio

from ottla.errors import IllegalStateError


def check_loop(own: asyncio.AbstractEventLoop | None, client: str) -> None:
    """Raise if the caller runs on another loop than the one that `client` belongs to (None: to no loop yet).

    Calls that only change the client may come between two runs of its loop, when none runs.
    """
    try:
        running = asyncio.get_running_loop()
    except RuntimeError:
        return
    if own is None or running is own:
        return
    state = ", which is closed" if own.is_closed() else ""
    raise IllegalStateError(
        f"this {client} is used on another event loop: it belongs to the loop that it was first used on{state}. Make one for "
        "each loop"
    )
