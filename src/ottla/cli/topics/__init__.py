"""The `topics` verb: one file per action."""
