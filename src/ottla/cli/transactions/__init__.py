"""The `transactions` verb: one file per action."""
