"""What must hold in every run, checked as it happens. Looks into nodes where no client can see."""

from tests.support.raft.memory_log import Entry, MemoryLog


class Violation(AssertionError):
    """A checker's finding."""


class Checkers:
    """One leader and one vote per epoch, committed records stay, high watermarks only rise."""

    def __init__(self) -> None:
        self.leaders: dict[int, int] = {}
        self.votes: dict[tuple[int, int], int] = {}
        self.committed: list[Entry] = []
        self.acknowledged = 0

    def leads(self, node_id: int, epoch: int, log: MemoryLog) -> None:
        """A node has become the leader: it must have everything that is committed."""
        known = self.leaders.setdefault(epoch, node_id)
        if known != node_id:
            raise Violation(f"two leaders in epoch {epoch}: {known} and {node_id}")
        self._agrees(node_id, log, min(len(self.committed), max(log.end_offset, log.start_offset)))
        if log.end_offset < len(self.committed):
            raise Violation(f"leader {node_id} of epoch {epoch} ends at {log.end_offset} of {len(self.committed)} committed")

    def voted(self, voter_id: int, epoch: int, candidate_id: int) -> None:
        known = self.votes.setdefault((voter_id, epoch), candidate_id)
        if known != candidate_id:
            raise Violation(f"{voter_id} votes twice in epoch {epoch}: for {known} and {candidate_id}")

    def commits(self, node_id: int, offset: int, log: MemoryLog) -> None:
        """A node regards everything below `offset` as committed."""
        if offset > log.end_offset:
            raise Violation(f"node {node_id} commits up to {offset}, and its log ends at {log.end_offset}")
        for at in range(max(len(self.committed), log.start_offset), offset):
            if at != len(self.committed):
                raise Violation(f"node {node_id} commits {at} before {len(self.committed)}")
            self.committed.append(log.entry(at))
        self._agrees(node_id, log, offset)

    def _agrees(self, node_id: int, log: MemoryLog, offset: int) -> None:
        for at in range(log.start_offset, min(offset, len(self.committed))):
            if log.entry(at) != self.committed[at]:
                raise Violation(f"node {node_id} has {log.entry(at)} at {at}, committed was {self.committed[at]}")

    def in_the_end(self, logs: dict[int, MemoryLog]) -> None:
        for node_id, log in logs.items():
            if log.end_offset < len(self.committed):
                raise Violation(f"node {node_id} ends at {log.end_offset} of {len(self.committed)} committed records")
            self._agrees(node_id, log, len(self.committed))
