"""Iceberg tables as sinks, with the package pyiceberg and no jar."""
