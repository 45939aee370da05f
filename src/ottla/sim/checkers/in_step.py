"""An idempotent producer and the broker agree on the next sequence, also after restarts.

There are two exceptions. A power loss may lose records; even if every record is flushed first, it may lose an unanswered batch
and keep a later one in the next segment. And where compaction, retention or DeleteRecords may remove batches of a producer that
is still known, a restarted broker may know only the producer's newest batch, and refuse a retry of an earlier one, as Apache
Kafka does.
"""

from ottla.errors.codes import error_name
from ottla.sim.checkers.checker import Batch, Checker, Place, Violation


class InStep(Checker):
    """Counts power losses, and remembers after how many each producer was last in step."""

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
