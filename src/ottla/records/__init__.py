"""Record batches, magic 2: view, build, read, check, patch, compress, and turn into columns."""
