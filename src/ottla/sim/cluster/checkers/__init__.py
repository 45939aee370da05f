"""Invariants of a cluster. These checkers look into the nodes, where no client can see (`watch.py`)."""
