"""Loads without a JVM: requests made in advance, connections that send them, and the limit of the loopback."""
