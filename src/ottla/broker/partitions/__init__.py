"""The partitions this node holds: appending, reading, waiting."""
