"""Jars of Kafka and others in the local cache, and what Java need not do again at every start."""
