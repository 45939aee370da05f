"""The audit log: a line for each decision of the authorizer.

    Principal = User:bob is Denied operation = WRITE from host = 10.0.0.5 on resource = Topic:LITERAL:orders for request =
    Produce with resourceRefCount = 1 based on rule DefaultDeny

Its logger is `ottla.authorizer` (`kafka.authorizer.logger` in Kafka). Denied is INFO, allowed DEBUG. What only filters an
answer, or fills it in, is TRACE: lists of topics and groups, authorized operations. Denied lines are limited as in
`fault_log.py`, because anybody can cause them.

At DEBUG every decision is logged, so grants are not remembered (`Grants.granted`), and the fast path declines. Levels are
looked at when one is set over the protocol, and when a connection is accepted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from ottla.broker.requests.fault_log import FaultLog
from ottla.metadata.acls import OPERATIONS, RESOURCE_TYPES

logger = logging.getLogger("ottla.authorizer")

TRACE: Final = 5


class AuditLevels:
    """What is logged, in this process: Python's loggers belong to it."""

    __slots__ = ("is_all", "is_denied", "is_trace")

    def __init__(self) -> None:
        self.is_denied = True
        self.is_all = self.is_trace = False

    def refresh(self) -> None:
        """Look at the logger's level."""
        self.is_denied = logger.isEnabledFor(logging.INFO)
        self.is_all = logger.isEnabledFor(logging.DEBUG)
        self.is_trace = logger.isEnabledFor(TRACE)


audit_levels: Final = AuditLevels()


class AuditLog:
    """The audit log of one node."""

    __slots__ = ("_denied",)

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._denied = FaultLog(monotonic_s, logger)

    def note(
        self,
        principal: object,
        host: str,
        operation: int,
        resource_type: int,
        name: str,
        api: str,
        count: int,
        is_allowed: bool,
        rule: object,
        is_silent: bool,
    ) -> None:
        """Log a decision on a request that names the resource `count` times; `is_silent`: the client is not told of it."""
        line = (
            "Principal = %s is %s operation = %s from host = %s on resource = %s:LITERAL:%s for request = %s with "
            "resourceRefCount = %d based on rule %s"
        )
        what = OPERATIONS.get(operation, operation), host, RESOURCE_TYPES.get(resource_type, resource_type), name, api, count
        facts = (principal, "Allowed" if is_allowed else "Denied", *what, rule)
        if is_silent:
            logger.log(TRACE, line, *facts)
        elif is_allowed:
            logger.debug(line, *facts)
        else:
            self._denied.report(logging.INFO, host, line, *facts)
