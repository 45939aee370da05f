"""The roles of a replica in the quorum: one file each, immutable values with the state and the rules of the role."""
