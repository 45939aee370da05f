"""The `produce` verb: reads lines and sends them as records."""
