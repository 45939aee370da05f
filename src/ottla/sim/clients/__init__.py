"""Clients of a simulated run: they speak the protocol over `link/` as anybody would, and tell checkers what they were told."""
