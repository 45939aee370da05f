"""Classic groups: the broker brings the members together, and one of them, the leader, says who reads what."""
