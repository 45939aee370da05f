"""Waits for a cluster whose brokers are away, and says so: a line that counts on a terminal, a line now and then elsewhere.

`--wait` bounds the wait. Ctrl-C ends it with a sentence. Only what may mend itself is waited for: brokers that are not up,
names that are not known yet, requests that time out. A refused login or a wrong setting is an error at once.
"""

from __future__ import annotations

import asyncio
import math
import shutil
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import click

from ottla.cli.common.connection import open_cluster
from ottla.cli.common.output import escape, fit, warn
from ottla.cli.common.settings import ClientSettings
from ottla.client.cluster import Cluster, is_worth_retrying
from ottla.config.values import parse_duration_ms
from ottla.errors import KafkaError, UnreachableError

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

SILENT_S = 1.0
"""How long an answer may take before a message is shown."""
REDRAW_S = 0.5
LINE_EVERY_S = 30.0
"""The time between two lines where lines stay: in a file or a pipe."""
PAUSE_S = 0.5
"""The time between two attempts."""
ATTEMPT_S = 10.0
"""What an attempt gets at least: a broker that answers late is not away."""
FOREVER = "forever"


def parse_wait_s(text: str) -> float:
    """`90s`, `5m`, 0 or forever, as seconds."""
    if text == FOREVER:
        return math.inf
    duration_ms = 0 if text == "0" else parse_duration_ms(text)
    if duration_ms is None:
        raise click.UsageError(f"--wait does not understand {text!r}: give 30s, 5m or 1h, 0 to not wait, or {FOREVER}")
    return duration_ms / 1000


def wait_option(default: str) -> Callable[[F], F]:
    """Adds --wait; the function gets `wait_s`."""
    return click.option(
        "--wait",
        "wait_s",
        callback=lambda ctx, param, text: parse_wait_s(text),
        default=default,
        metavar="DURATION",
        help=f"How long to wait for brokers that are away: 30s, 5m, {FOREVER}; 0: not at all.  [default: {default}]",
    )


def with_cluster_awaited(settings: ClientSettings, work: Callable[[Cluster], Awaitable[T]], wait_s: float) -> T:
    """Like `with_cluster`, but waits up to `wait_s` for brokers that are away. Then the last error is raised."""
    servers = settings.properties.get("bootstrap.servers") or settings.properties.get("bootstrap.controllers", "")
    message = _Message(servers, wait_s)
    try:
        return asyncio.run(_attempts(settings, work, wait_s, message))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted after {message.waited_s():.0f} s of waiting for a broker at {servers}") from None
    finally:
        message.erase()


async def _attempts(settings: ClientSettings, work: Callable[[Cluster], Awaitable[T]], wait_s: float, message: _Message) -> T:
    showing = asyncio.create_task(message.run()) if wait_s else None
    try:
        while True:
            left_s = max(ATTEMPT_S, wait_s - message.waited_s())
            try:
                result = await _attempt(settings, work, left_s if wait_s else math.inf)
                message.answered()
                return result
            except TimeoutError:
                message.reason = f"it does not answer a request within {left_s:.0f} s"
                if message.waited_s() >= wait_s:
                    raise UnreachableError(f"no broker at {message.servers} answers: {message.reason}") from None
            except KafkaError as error:
                is_away = isinstance(error, UnreachableError) and not error.is_refused
                if not (is_away or is_worth_retrying(error)) or message.waited_s() >= wait_s:
                    raise
                message.reason = str(error)
            await asyncio.sleep(PAUSE_S)
    finally:
        if showing is not None:
            showing.cancel()


async def _attempt(settings: ClientSettings, work: Callable[[Cluster], Awaitable[T]], limit_s: float) -> T:
    cluster = open_cluster(settings)
    try:
        async with asyncio.timeout(None if math.isinf(limit_s) else limit_s):
            return await work(cluster)
    finally:
        cluster.close()


class _Message:
    """What a person sees of a wait."""

    def __init__(self, servers: str, wait_s: float) -> None:
        self.servers = servers
        self.reason = ""
        """Why the last attempt failed."""
        self._wait_s = wait_s
        self._begin_s = time.monotonic()
        self._is_shown = False
        self._has_line = sys.stderr.isatty()

    def waited_s(self) -> float:
        return time.monotonic() - self._begin_s

    async def run(self) -> None:
        """Show how long it has been, until cancelled."""
        await asyncio.sleep(SILENT_S)
        while True:
            self._is_shown = True
            if self._has_line:
                width = shutil.get_terminal_size().columns
                sys.stderr.write(f"\r\x1b[K{fit(escape(self.text()), width - 1)}")
                sys.stderr.flush()
            else:
                warn(self.text())
            await asyncio.sleep(REDRAW_S if self._has_line else LINE_EVERY_S)

    def text(self) -> str:
        """`waiting for a broker at localhost:9092, 12 s of 5 min: nothing listens there`."""
        limit = "" if math.isinf(self._wait_s) else f" of {shown_duration(self._wait_s)}"
        reason = f": {self.reason}" if self.reason else ""
        return f"waiting for a broker at {self.servers}, {shown_duration(self.waited_s())}{limit}{reason}"

    def answered(self) -> None:
        """Where lines stay, say that the wait is over."""
        if self._is_shown and not self._has_line:
            warn(f"{self.servers} answers after {shown_duration(self.waited_s())}")

    def erase(self) -> None:
        """Remove the line from a terminal."""
        if self._is_shown and self._has_line:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def shown_duration(duration_s: float) -> str:
    """`12 s`, `5 min`, `1 min 20 s`."""
    minutes, seconds = divmod(round(duration_s), 60)
    if not minutes:
        return f"{seconds} s"
    return f"{minutes} min {seconds} s" if seconds else f"{minutes} min"
