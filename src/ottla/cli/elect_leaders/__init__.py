"""The `elect-leaders` verb: the command, and its parts."""
