"""Checks of the machine that a node runs on: pure functions of facts and of the node's settings."""
