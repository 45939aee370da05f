"""The broker: from a socket to the log and back. net → requests → handlers → partitions → reply."""
