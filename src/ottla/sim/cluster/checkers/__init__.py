"""Invariants of a cluster, one file each. These checkers look into the nodes, where no client can see (`watching.py`)."""
