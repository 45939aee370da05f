"""The simulator: the node runs in virtual time, on a disk and network in memory that fail. For tests, never for production."""
