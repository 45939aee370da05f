"""Misbehaving clients and the node they attack."""
