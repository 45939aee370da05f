"""Assignors: pure functions from members, subscriptions and the previous target to the new target assignment."""
