"""Clients of a simulated run: they use the protocol over `link/`, and report requests and answers to the checkers."""
