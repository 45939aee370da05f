"""Opening a partition log: repairs leftovers, recovers segments after an unclean shutdown, loads the state."""
