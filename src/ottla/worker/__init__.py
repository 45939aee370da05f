"""Consume loops for applications: retries, dead letters, several records at a time, commits, and a graceful end."""
