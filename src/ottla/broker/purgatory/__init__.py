"""Parked requests: fetches that wait for records, produce requests that wait for replicas or the disk."""
