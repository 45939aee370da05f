"""Coordinator shards without a host: decisions replayed at once, time moved by hand."""
