"""The proof that a transaction coordinator knows of a transaction in this partition.

Between the request to the coordinator and its answer an end marker may be written and a new transaction begun; an answer
must count only for the verification that asked. So the object's identity is the token: whoever holds the very object that the
partition still holds has been verified.
"""


class VerificationState:
    """One verification under way, or done and not yet used."""

    __slots__ = ("epoch", "lowest_sequence", "started_ms", "supports_epoch_bump")

    def __init__(self, started_ms: int, sequence: int, epoch: int, supports_epoch_bump: bool) -> None:
        self.started_ms = started_ms
        self.lowest_sequence = sequence
        """The lowest first sequence that waits for this verification: nothing above it may be appended before it."""
        self.epoch = epoch
        self.supports_epoch_bump = supports_epoch_bump
        """Whether the producer's transactions are of version 2, each with an epoch of its own."""

    def note(self, sequence: int, epoch: int) -> None:
        """Another batch waits for the same verification."""
        if epoch == self.epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)
        elif epoch > self.epoch:
            self.epoch = epoch
            self.lowest_sequence = sequence
