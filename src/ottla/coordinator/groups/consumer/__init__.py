"""Consumer groups (KIP-848): members report their subscriptions and partitions, and the coordinator assigns partitions."""
