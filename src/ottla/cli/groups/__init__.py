"""The `groups` verb: one file per action; what the actions ask the cluster is in `views.py` and `offsets.py`."""
