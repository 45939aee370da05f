"""Asking the cluster from the driver: waits while no broker answers, and says so every few seconds.

A call is tried with a short limit at first and longer ones later. In all it is given `fetchOffset.numRetries` times
default.api.timeout.ms.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from ottla.env.real.tls_errors import protocol_mismatch
from ottla.errors import RetriableError
from ottla.spark.errors import SourceError
from ottla.spark.source.options import SourceOptions

logger = logging.getLogger("ottla.spark")

FIRST_TRY_S = 5.0
API_TIMEOUT_MS = 60_000

T = TypeVar("T")


def ask(options: SourceOptions, what: str, call: Callable[[float], T]) -> T:
    """The result of `call`, which gets the seconds it may take. `what` is asked for, for messages: "the topics"."""
    began_s = time.monotonic()
    total_s = options.lookup_attempts * int(options.client.get("default.api.timeout.ms", API_TIMEOUT_MS)) / 1000
    limit_s = first_s = min(FIRST_TRY_S, total_s)
    while True:
        tried_s = time.monotonic()
        try:
            return call(limit_s)
        except RetriableError as error:
            now_s = time.monotonic()
            left_s = began_s + total_s - now_s
            if limit_s == first_s and (mismatch := protocol_mismatch(options.client)):
                raise SourceError(f"{options.bootstrap_servers} did not tell {what}: {mismatch}") from None
            if left_s <= 0:
                raise SourceError(
                    f"{options.bootstrap_servers} did not tell {what} within {total_s:g} s: {error}; start the broker, or "
                    "correct kafka.bootstrap.servers"
                ) from None
            logger.warning(
                "waiting for a broker at %s to tell %s, for %.0f s already: %s",
                options.bootstrap_servers,
                what,
                now_s - began_s,
                error,
            )
            # A call that failed at once is not repeated at once.
            time.sleep(max(0.0, min(left_s, options.lookup_interval_ms / 1000 - (now_s - tried_s))))
            limit_s = max(0.001, min(left_s, limit_s * 1.5))
