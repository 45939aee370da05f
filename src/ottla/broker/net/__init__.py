"""Connections: frames in, replies out in order, limits."""
