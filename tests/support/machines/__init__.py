"""Clusters of plain data for the machines of clients."""
