"""Loads without a JVM: requests encoded in advance, connections that send them, and the limit of the loopback."""
