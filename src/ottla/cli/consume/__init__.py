"""The `consume` verb: partitions to records, records to lines."""
