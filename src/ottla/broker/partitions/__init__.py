"""The partitions this node holds: appends, reads, upkeep, moves between log directories."""
