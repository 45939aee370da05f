"""Clients whose history is recorded and checked; see `run.py`."""
