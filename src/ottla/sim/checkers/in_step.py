"""An idempotent producer and the broker agree on the next sequence, whatever happened between them.

Only after a power loss has taken records may a broker have forgotten. Where every record is flushed first, too: it may have
taken an unanswered batch and left a later one, in the next segment. And where batches may be gone while their producer is
known still, by compaction, retention or a client's wish, a restart may know only the newest batch of a producer: a retry of one
before it is out of step, as with Apache Kafka.
"""

from ottla.errors.codes import error_name
from ottla.sim.checkers.checker import Batch, Checker, Place, Violation


class InStep(Checker):
    """Counts power losses, and remembers at which of them each producer was last in step."""

    def __init__(self) -> None:
        self._power_losses = 0
        self._in_step_at: dict[tuple[str, Place], int] = {}
        self._shortened: dict[Place, None] = {}

    def power_lost(self) -> None:
        self._power_losses += 1

    def deletion_requested(self, place: Place, offset: int) -> None:
        self._shortened[place] = None

    def acknowledged(self, batch: Batch, base_offset: int) -> None:
        self._in_step_at[batch.producer, batch.place] = self._power_losses

    def out_of_step(self, batch: Batch, code: int) -> None:
        at = self._in_step_at.get((batch.producer, batch.place), 0)
        topic = batch.place.topic
        may_be_gone = topic.is_compacted or topic.is_retained or batch.place in self._shortened
        if at == self._power_losses and not may_be_gone:
            raise Violation(
                f"{batch.place}: {batch.producer} got {error_name(code)} for its oldest unanswered batch {batch.number}, "
                "with no loss that explains it"
            )
        self._in_step_at[batch.producer, batch.place] = self._power_losses
