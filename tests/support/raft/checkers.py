"""What must hold in every run, checked as it happens. Looks into nodes where no client can see."""

from tests.support.raft.memory_log import Entry, MemoryLog

from ottla.raft.voters import ReplicaKey


class Violation(AssertionError):
    """A checker's finding."""


class Checkers:
    """One leader and one vote per epoch, committed records stay, high watermarks only rise."""

    def __init__(self) -> None:
        self.leaders: dict[int, int] = {}
        self.votes: dict[tuple[ReplicaKey, int], int] = {}
        self.committed: list[Entry] = []
        self.committed_in: list[int] = []
        """The epoch in which each of them was first seen to be committed."""

    def leads(self, node_id: int, epoch: int, log: MemoryLog) -> None:
        """A node has become the leader: it must have everything that was committed in earlier epochs.

        A paused candidate can learn of its votes when a later epoch has begun. It leads its old epoch, and commits nothing.
        """
        known = self.leaders.setdefault(epoch, node_id)
        if known != node_id:
            raise Violation(f"two leaders in epoch {epoch}: {known} and {node_id}")
        due = sum(committed_in < epoch for committed_in in self.committed_in)
        if log.end_offset < due:
            raise Violation(f"leader {node_id} of epoch {epoch} ends at {log.end_offset} of {due} committed records")
        self._agrees(node_id, log, due)

    def voted(self, voter: ReplicaKey, epoch: int, candidate_id: int) -> None:
        known = self.votes.setdefault((voter, epoch), candidate_id)
        if known != candidate_id:
            raise Violation(f"{voter} votes twice in epoch {epoch}: for {known} and {candidate_id}")

    def commits(self, node_id: int, offset: int, log: MemoryLog, epoch: int, is_leader: bool) -> None:
        """A node of `epoch` regards everything below `offset` as committed."""
        if is_leader and offset > log.start_offset and log.entry(offset - 1).epoch != epoch:
            raise Violation(f"leader {node_id} of epoch {epoch} commits up to {offset} without a record of its epoch")
        if offset > log.end_offset:
            raise Violation(f"node {node_id} commits up to {offset}, and its log ends at {log.end_offset}")
        for at in range(max(len(self.committed), log.start_offset), offset):
            if at != len(self.committed):
                raise Violation(f"node {node_id} commits {at} before {len(self.committed)}")
            self.committed.append(log.entry(at))
            self.committed_in.append(epoch)
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
