"""The `transactions` verb: one file per action; what the actions ask the cluster is in `asking.py`."""
