"""Server-sent events: a stream of named events with a heartbeat, bounded in number and time.

A browser reads one stream per tab, and ends it by closing the connection: the source is closed then, wherever it waits.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, NamedTuple

from starlette.responses import StreamingResponse

from ottla.console.app import Refused, Visit
from ottla.errors import KafkaError, OttlaError

logger = logging.getLogger("ottla.console")

STREAMS_MAX = 64
HEARTBEAT_S = 15.0
STREAM_S_MAX = 3600.0


class Event(NamedTuple):
    """One event. After a lost connection, the browser names the last id that it has."""

    name: str
    data: Any
    id: str = ""

    def encoded(self) -> bytes:
        lines = [f"id: {self.id}"] if self.id else []
        return "\n".join([*lines, f"event: {self.name}", f"data: {json.dumps(self.data, default=str)}", "", ""]).encode()


_open_streams: set[object] = set()


def event_stream(visit: Visit, source: AsyncGenerator[Event, None]) -> StreamingResponse:
    """The response that sends a source's events. An error of the cluster is an event named `failure`."""
    if len(_open_streams) >= STREAMS_MAX:
        raise Refused(503, f"{STREAMS_MAX} live pages are open already: close some")
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_encoded(source, visit.request.url.path), media_type="text/event-stream", headers=headers)


async def _encoded(source: AsyncGenerator[Event, None], path: str) -> AsyncIterator[bytes]:
    mark = object()
    _open_streams.add(mark)
    ends_s = asyncio.get_running_loop().time() + STREAM_S_MAX
    waiting: asyncio.Task[Event] | None = None
    try:
        yield b": begin\n\n"
        while asyncio.get_running_loop().time() < ends_s:
            waiting = waiting or asyncio.ensure_future(anext(source))
            await asyncio.wait([waiting], timeout=HEARTBEAT_S)
            if not waiting.done():
                yield b": here\n\n"
                continue
            finished, waiting = waiting, None
            try:
                yield finished.result().encoded()
            except StopAsyncIteration:
                break
        yield Event("end", {}).encoded()
    except (KafkaError, OttlaError, TimeoutError) as error:
        yield Event("failure", {"text": str(error) or "the cluster does not answer"}).encoded()
    except Exception:
        logger.exception("the stream %s failed", path)
        yield Event("failure", {"text": "something went wrong: see the console's log"}).encoded()
    finally:
        _open_streams.discard(mark)
        if waiting is not None:  # before the source is closed: it must not run
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        await source.aclose()
