"""Code that the verbs share: connecting to a cluster, flags, settings, tables, escaping."""
