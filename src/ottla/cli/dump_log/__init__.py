"""`ottla dump-log`: shows the content of the files in a log directory."""
