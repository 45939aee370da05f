"""Which epochs a replica believes: what no honest replica can say is refused, and never written to quorum-state.

Epochs are 32-bit numbers that only rise, and one raised to the end ends the quorum for good. Anybody who reaches the port can
send a request, so what requests may raise is counted:

- **At once by `JUMP_MAX`.** A replica without pre-votes (Kafka before 4.0) that is cut off raises its epoch with every
  election, about one a second: 2^23 are 97 days. Nobody would hear it any more if less were believed.
- **Then by `RISES_PER_S`**, more than honest elections make. At that rate the epochs last 6.8 years, and not for 256 requests.

A replica that is behind by more is not shut out: it asks for votes and fetches, and the answers of the nodes that it chose to
ask are believed up to `EPOCH_LAST`. What lies above is left to this replica's own elections.
"""

from __future__ import annotations

from typing import Final

from ottla.raft.election import ElectionState

EPOCH_MAX: Final = (1 << 31) - 1
"""The format's last epoch."""
EPOCH_LAST: Final = EPOCH_MAX - (1 << 20)
"""The last epoch that is believed."""
JUMP_MAX: Final = 1 << 23
RISES_PER_S: Final = 10
RECOVERED_ABOVE_LOG: Final = 1 << 20
"""How far above its log's last epoch a replica begins whose file has an impossible epoch.

The votes in that file are gone, and it must not vote twice in an epoch. It has voted in none so far above its log: of a million
elections one would have had a winner, with records. Less than `JUMP_MAX`, so that the others follow.
"""


class HeardEpochs:
    """How far requests of others may still raise the epoch."""

    __slots__ = ("_at_ms", "_left")

    def __init__(self) -> None:
        self._left = JUMP_MAX
        self._at_ms: int | None = None

    def allow(self, epoch: int, heard: int, now_ms: int) -> bool:
        """Whether a request may raise `epoch` to `heard`."""
        self._refill(now_ms)
        return heard <= EPOCH_LAST and heard - epoch <= self._left

    def raised(self, by: int) -> None:
        """A request has raised the epoch."""
        self._left = max(0, self._left - by)

    def _refill(self, now_ms: int) -> None:
        if self._at_ms is None:
            self._at_ms = now_ms
        more = (now_ms - self._at_ms) * RISES_PER_S // 1000
        if more > 0:
            self._left = min(JUMP_MAX, self._left + more)
            self._at_ms = now_ms


def recovered(election: ElectionState | None, last_epoch: int) -> ElectionState | None:
    """The election to start with: as in the file, or above the log's last epoch if the file's epoch is not believed."""
    if election is None or election.epoch <= EPOCH_LAST or last_epoch > EPOCH_LAST - RECOVERED_ABOVE_LOG:
        return election
    return ElectionState(last_epoch + RECOVERED_ABOVE_LOG)
