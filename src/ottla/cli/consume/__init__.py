"""The `consume` verb: fetches partitions and prints their records."""
