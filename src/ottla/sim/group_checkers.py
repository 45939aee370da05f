"""Creates the checkers of groups and transactions from a plan, and counts what they checked."""

from __future__ import annotations

from ottla.sim.checkers.atomic_transactions import AtomicTransactions
from ottla.sim.checkers.checker import Checker
from ottla.sim.checkers.committed_offsets import CommittedOffsets
from ottla.sim.checkers.exactly_once import ExactlyOnce
from ottla.sim.checkers.generations import Generations
from ottla.sim.checkers.member_epochs import MemberEpochs
from ottla.sim.checkers.nothing_skipped import NothingSkipped
from ottla.sim.checkers.producer_epochs import ProducerEpochs
from ottla.sim.checkers.timely_endings import TimelyEndings
from ottla.sim.clients.member import SESSION_TIMEOUT_MS
from ottla.sim.coordination import ABORT_INTERVAL_MS, CLOCK_ERRORS_MS, OFFSETS_RETENTION_S
from ottla.sim.plan import Plan

SLACK_S = 2.0
"""The time to write markers on a slow disk."""


class GroupCheckers:
    """The checkers of groups and transactions of one run."""

    def __init__(self, plan: Plan) -> None:
        clocks_ms = max(CLOCK_ERRORS_MS) - min(CLOCK_ERRORS_MS)
        bound_s = (plan.transaction_timeout_ms_max + ABORT_INTERVAL_MS + clocks_ms) / 1000 + SLACK_S
        self._offsets = CommittedOffsets(plan.is_flushed, OFFSETS_RETENTION_S if plan.has_expiring_offsets else None)
        self._generations = Generations(plan.is_flushed, SESSION_TIMEOUT_MS / 1000 if plan.has_expiring_offsets else None)
        self._members = MemberEpochs(plan.is_flushed, SESSION_TIMEOUT_MS / 1000)
        self._transactions = AtomicTransactions()
        self._once = ExactlyOnce()
        self._skipped = NothingSkipped(plan.is_flushed)
        self._producers = ProducerEpochs([app.name for app in plan.apps if app.may_change_producer])
        self.all: list[Checker] = [
            self._offsets,
            self._generations,
            self._members,
            self._transactions,
            self._once,
            self._skipped,
            self._producers,
            TimelyEndings(bound_s),
        ]

    def counts(self) -> dict[str, int]:
        """How much each has checked."""
        return {
            "offsets": self._offsets.judged,
            "offsets gone": self._offsets.missed,
            "offsets excused": self._offsets.excused,
            "generations": self._generations.judged,
            "handovers": self._members.handovers,
            "transactions": self._transactions.judged,
            "once": self._once.judged,
            "committed": self._skipped.judged,
            "producers": self._producers.judged,
            "other producers": self._producers.changes,
        }
