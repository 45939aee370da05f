"""The request log: one line per request at level DEBUG of the logger `ottla.requests`. Off by default.

    Produce version 13 (correlation id 7, client id 'shop') from 10.0.0.5:40112 on PLAINTEXT: 1072 bytes, answered with
    64 bytes after 0.412 ms

Asking Python's logger for its level takes 130 ns, so the answer is kept in `request_log.is_on`: one attribute per request. It
is refreshed when a level is set over the protocol, and when a connection is accepted. Levels belong to the process, as Python's
loggers do.
"""

from __future__ import annotations

import logging
from typing import Final

from ottla.broker.requests.context import ConnectionInfo

logger = logging.getLogger("ottla.requests")


class RequestLog:
    """Whether requests are logged, and how."""

    __slots__ = ("is_on",)

    def __init__(self) -> None:
        self.is_on = False

    def refresh(self) -> None:
        """Look at the logger's level."""
        self.is_on = logger.isEnabledFor(logging.DEBUG)

    def line(
        self,
        name: str,
        version: int,
        correlation_id: int,
        client_id: str | None,
        connection: ConnectionInfo,
        request_bytes: int,
        reply_bytes: int | None,
        time_s: float,
    ) -> None:
        """Log one request; `reply_bytes` is None if it gets no reply. `time_s`: from complete request to ready reply."""
        host, port = connection.peer
        logger.debug(
            "%s version %d (correlation id %d, client id %r) from %s:%d on %s: %d bytes, %s after %.3f ms",
            name,
            version,
            correlation_id,
            client_id,
            host,
            port,
            connection.listener,
            request_bytes,
            "not answered" if reply_bytes is None else f"answered with {reply_bytes} bytes",
            time_s * 1000,
        )


request_log: Final = RequestLog()
