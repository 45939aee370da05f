"""The group coordinator: classic and consumer groups, their committed offsets, and the records of __consumer_offsets."""
