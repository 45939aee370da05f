"""Committed offsets of one shard: committing, reading, deleting, expiring."""
