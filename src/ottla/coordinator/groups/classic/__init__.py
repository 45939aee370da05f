"""Classic groups: the coordinator gathers the members, and one of them, the leader, assigns the partitions."""
