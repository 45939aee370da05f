"""Runs all checks over a history, and says what they found and how much there was to check."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from ottla.ids import TopicPartition
from ottla.sim.histories import cycles, polling, sending, transacting
from ottla.sim.histories.facts import Facts, Finding
from ottla.sim.histories.history import History

ALWAYS: Final = (
    sending.inconsistent_offsets,
    sending.duplicates,
    sending.invented_records,
    sending.lost_writes,
    sending.out_of_order_sends,
    polling.polls,
    polling.committed_offsets,
    transacting.aborted_reads,
    transacting.precommitted_reads,
    cycles.read_cycles,
)
AT_THE_END: Final = (sending.unseen_records, transacting.torn_transactions)
"""Only when consumers have had the time to read everything."""
_SHOWN_MAX: Final = 20


@dataclass
class Report:
    """What the checks found. Nothing, if all is well; then `sends`, `stored` and `seen` say how much was checked."""

    findings: list[Finding]
    sends: int = 0
    stored: int = 0
    seen: int = 0
    transactions: int = 0
    lag_s_max: float = 0.0
    """The longest time that a stored record was not seen by any consumer."""
    allowed_cycles: list[cycles.Cycle] = field(default_factory=list)
    """Cycles between transactions that Kafka allows."""

    @property
    def lines(self) -> list[str]:
        """The report in words."""
        counts = f"{self.sends} records sent, {self.stored} stored, {self.seen} seen, {self.transactions} transactions"
        lag = f"unseen for {self.lag_s_max:.2f} s at most"
        lines = [f"{counts}; {lag}; {len(self.allowed_cycles)} cycles that Kafka allows"]
        lines += map(str, self.findings[:_SHOWN_MAX])
        if len(self.findings) > _SHOWN_MAX:
            lines.append(f"and {len(self.findings) - _SHOWN_MAX} more findings")
        return lines

    def raise_findings(self) -> None:
        """Raise an AssertionError if anything was found."""
        if self.findings:
            raise AssertionError("\n".join(self.lines))


def check(history: History, *, is_read_whole: bool, shrinking: Collection[TopicPartition] = ()) -> Report:
    """Run the checks. `is_read_whole`: consumers had the time to read everything that was stored.

    `shrinking`: partitions whose records may be removed.
    """
    facts = Facts(history, shrinking)
    lags_s = sending.lags_s(facts)
    return Report(
        [found for each in (*ALWAYS, *(AT_THE_END if is_read_whole else ())) for found in each(facts)],
        len(facts.sends),
        sum(send.offset is not None for send in facts.sends),
        len(facts.first_seen_s),
        len(facts.transactions),
        lags_s[-1] if lags_s else 0.0,
        cycles.cycles(facts) if facts.transactions else [],
    )
