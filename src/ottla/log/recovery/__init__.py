"""Opening a partition log: leftovers repaired, unclean segments recovered, state loaded."""
