"""The check of the machine that every start makes, once the node is up: a log line for each thing that will fail or hurt.

It reads in a worker thread and asks neither the network nor other programs. `AtStart` keeps the outcome for the metrics.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from ottla.records.kernels import variant

if TYPE_CHECKING:
    from ottla.broker.checks.findings import Finding
    from ottla.config.broker import BrokerConfig
    from ottla.env import Workers
    from ottla.env.system import SystemReader

logger = logging.getLogger("ottla.check")

AFTER_S = 0.5
"""It waits for the first requests to pass: its imports hold the interpreter lock for some milliseconds."""


class AtStart:
    """What the check at this node's start has found."""

    def __init__(self) -> None:
        self.failed: dict[str, bool] = {}
        """Check → whether it found something that will fail or hurt. Empty until it has been made."""

    async def run(self, system: SystemReader, workers: Workers, config: BrokerConfig) -> None:
        """Look, and log what is found."""
        await asyncio.sleep(AFTER_S)
        self.report(await workers.run(lambda: look(system, config)))

    def report(self, findings: list[Finding]) -> None:
        """Log and count the findings."""
        for each in findings:
            is_error, is_bad = each.level.value == "error", each.level.value in ("error", "warn")
            if is_bad:
                logger.log(logging.ERROR if is_error else logging.WARNING, "%s: %s", each.id, each.sentence)
            self.failed[each.id] = self.failed.get(each.id, False) or is_bad


def look(system: SystemReader, config: BrokerConfig) -> list[Finding]:
    """The findings of the checks that belong to a start."""
    from ottla.broker.checks.table import AT_START, run_checks, wanted_by  # late: in the worker thread

    return run_checks(AT_START, system.read(wanted_by(AT_START, config)), config, variant())
