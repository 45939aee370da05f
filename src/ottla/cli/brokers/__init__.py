"""`ottla brokers`: the brokers of a cluster."""
