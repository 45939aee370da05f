"""Log directories of a node: locks, checkpoints, creation, removal and moves of partitions."""
