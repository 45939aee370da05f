"""`ottla dump-log`: what is in a data directory's files, for people and for programs."""
