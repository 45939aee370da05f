"""The `reassign` verb: moves partitions to other brokers or log directories."""
