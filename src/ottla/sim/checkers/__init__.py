"""Invariants that must hold in every run.

A checker gets every request and answer of the clients (`Checker`), and raises `Violation` when they contradict its invariant.
Checkers know nothing of the node: they see only what went over the wire.
"""
