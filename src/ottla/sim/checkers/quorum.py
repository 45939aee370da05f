"""The metadata log's high watermark and epoch never decrease, even after a power loss: both are synced before answering."""

from ottla.sim.checkers.checker import Checker, Violation


class MonotonicQuorum(Checker):
    """Remembers the highest values in any answer."""

    def __init__(self) -> None:
        self._leader_epoch = -1
        self._high_watermark = -1

    def quorum_answered(self, leader_epoch: int, high_watermark: int) -> None:
        if leader_epoch < self._leader_epoch:
            raise Violation(f"the metadata log's epoch was {self._leader_epoch}, and now it is {leader_epoch}")
        if high_watermark < self._high_watermark:
            raise Violation(f"the metadata log was committed up to {self._high_watermark}, and now up to {high_watermark}")
        self._leader_epoch, self._high_watermark = leader_epoch, high_watermark
