"""APIs of groups and their committed offsets, for the classic and the consumer protocol."""
