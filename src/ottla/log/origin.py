"""Who hands records to a log: decides how much is checked before they are appended."""

from enum import Enum


class AppendOrigin(Enum):
    """Where an append comes from."""

    CLIENT = "client"
    """A producer: everything is checked."""
    COORDINATOR = "coordinator"
    """A group or transaction coordinator on this node: producer epochs are checked, sequences do not exist."""
    REPLICATION = "replication"
    """The leader's log, or this log's own bytes at recovery: checked when they were first written, and taken as they are."""
    RAFT_LEADER = "raft leader"
    """The leader of the metadata quorum, whose batches have no producers."""
