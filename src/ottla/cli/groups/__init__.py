"""The `groups` verb: one file per action. `views.py`, `listing.py` and `offsets.py` send their requests."""
