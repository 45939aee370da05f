"""The roles of a replica in the quorum: one file each, immutable values with what the role knows and may decide."""
