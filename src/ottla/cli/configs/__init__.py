"""The `configs` verb: one file per action."""
