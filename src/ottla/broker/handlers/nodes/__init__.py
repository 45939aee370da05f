"""Requests that only nodes of the cluster send, on controllers' listeners."""
