"""The broker: from a socket to the log and back. net → dispatch → handlers → partitions → reply."""
