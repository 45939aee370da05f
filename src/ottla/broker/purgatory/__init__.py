"""Replies that wait: fetches for records, produce requests for replicas or the disk."""
