"""The origin of an append: client, coordinator or replication. It decides how much is checked before the append."""

from enum import Enum


class AppendOrigin(Enum):
    """Where an append comes from."""

    CLIENT = "client"
    """A producer: everything is checked."""
    COORDINATOR = "coordinator"
    """A group or transaction coordinator on this node: producer epochs are checked. Its batches have no sequences."""
    REPLICATION = "replication"
    """The leader's log, or this log's own bytes at recovery. They were checked when first written and are not checked again."""
    RAFT_LEADER = "raft leader"
    """The leader of the metadata quorum. Its batches have no producers."""
