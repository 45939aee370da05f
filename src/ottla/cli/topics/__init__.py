"""The `topics` verb: lists, describes, creates, changes and deletes topics."""
