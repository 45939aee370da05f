"""Coordinator shards without a host: decisions are replayed at once, and tests move the time."""
