"""`ottla sql`: a shell and a one-shot runner for SQL over topics."""
