"""A cluster for tests: several nodes in child processes that a test can stop, kill, pause, restart and cut off."""
