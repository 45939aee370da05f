"""The proof that a transaction coordinator knows of a transaction in this partition.

Between the request to the coordinator and its response, an end marker may be written and a new transaction begin. The response
must count only for the verification that sent the request. So the object's identity is the token: an append is verified if it
carries the same object that the partition still holds.
"""


class VerificationState:
    """One verification: waiting for the coordinator, or confirmed and not yet used."""

    __slots__ = ("epoch", "lowest_sequence", "started_ms", "supports_epoch_bump")

    def __init__(self, started_ms: int, sequence: int, epoch: int, supports_epoch_bump: bool) -> None:
        self.started_ms = started_ms
        self.lowest_sequence = sequence
        """The lowest first sequence that waits for this verification. A batch above it must not be appended before it."""
        self.epoch = epoch
        self.supports_epoch_bump = supports_epoch_bump
        """Whether the producer uses transaction version 2, where each transaction has its own epoch."""

    def note(self, sequence: int, epoch: int) -> None:
        """Note another batch that waits for this verification."""
        if epoch == self.epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)
        elif epoch > self.epoch:
            self.epoch = epoch
            self.lowest_sequence = sequence
