"""The `groups` verb: one file per action. `describe.py`, `listing.py` and `describe.py` send their requests."""
