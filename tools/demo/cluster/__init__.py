"""`make demo-cluster`: three nodes, a killed leader, nothing lost."""
