"""APIs of groups and their committed offsets, classic and consumer protocol."""
