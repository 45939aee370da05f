"""What must hold in every run: one file per invariant.

A checker hears everything that clients were told (`Checker`), and raises `Violation` when the story cannot be true of a broker
that keeps its word. Checkers know nothing of the node: they judge what came over the wire.
"""
