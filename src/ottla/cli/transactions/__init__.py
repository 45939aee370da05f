"""The `transactions` verb: one file per action. `asking.py` sends their requests."""
