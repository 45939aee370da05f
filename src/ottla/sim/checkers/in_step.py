"""An idempotent producer and the broker agree on the next sequence, whatever happened between them.

Only after a power loss has taken records may a broker have forgotten. Where every record is flushed first, too: it may have
taken an unanswered batch and left a later one, in the next segment. In a compacted topic a restart knows only the newest batch
of a producer, since others may have been compacted away: a retry of one before it is out of step, as with Apache Kafka.
"""

from ottla.errors.codes import error_name
from ottla.sim.checkers.checker import Batch, Checker, Place, Violation


class InStep(Checker):
    """Counts power losses, and remembers at which of them each producer was last in step."""

    def __init__(self) -> None:
        self._power_losses = 0
        self._in_step_at: dict[tuple[str, Place], int] = {}

    def power_lost(self) -> None:
        self._power_losses += 1

    def acknowledged(self, batch: Batch, base_offset: int) -> None:
        self._in_step_at[batch.producer, batch.place] = self._power_losses

    def out_of_step(self, batch: Batch, code: int) -> None:
        at = self._in_step_at.get((batch.producer, batch.place), 0)
        if at == self._power_losses and not batch.place.topic.is_compacted:
            raise Violation(
                f"{batch.place}: {batch.producer} was told {error_name(code)} for its oldest unanswered batch {batch.number}, "
                "with no loss that explains it"
            )
        self._in_step_at[batch.producer, batch.place] = self._power_losses
