"""Delta tables as sinks, with the package deltalake and no jar."""
