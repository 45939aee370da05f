"""Clients that are garbage collected, or left over at the end of the process, without `close`: they say so.

A face registers one of these functions with `weakref.finalize`. They get parts of the client, never the face, and may run
in any thread.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.errors.texts import counted

if TYPE_CHECKING:
    import asyncio

ADVICE = "Call close(), or use `with`"


def producer_dropped(logger: logging.Logger, unsent: int) -> None:
    """Say that a producer is gone. Records that it had not sent are lost, which is an error."""
    if unsent:
        verb = "is" if unsent == 1 else "are"
        logger.error(
            "a producer was dropped without close(): %s that it had not sent %s lost. Call close() or flush(), or use `with`",
            counted(unsent, "record"),
            verb,
        )
    warnings.warn(f"a producer was dropped without close(). {ADVICE}", ResourceWarning, stacklevel=2)


def consumer_dropped(logger: logging.Logger, group_id: str | None) -> None:
    """Say that a consumer is gone. `group_id`: the group that it is still a member of."""
    if group_id is not None:
        logger.warning(
            "a consumer of group %s was dropped without close(): its last offsets are not committed, and its partitions are "
            "not read until the group misses it. %s",
            group_id,
            ADVICE,
        )
    warnings.warn(f"a consumer was dropped without close(). {ADVICE}", ResourceWarning, stacklevel=2)


def admin_dropped() -> None:
    """Say that an Admin is gone. Nothing is lost with it."""
    warnings.warn(f"an Admin was dropped without close(). {ADVICE}", ResourceWarning, stacklevel=2)


def on_loop(loop: asyncio.AbstractEventLoop, close: Callable[[], object]) -> None:
    """End what a dropped client has left on an application's event loop, if that still runs."""
    try:
        loop.call_soon_threadsafe(close)
    except RuntimeError:
        pass  # the loop is closed, and with it all that belonged to it
