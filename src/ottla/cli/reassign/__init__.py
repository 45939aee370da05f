"""The `reassign` verb: one file per action, and the parts they share."""
