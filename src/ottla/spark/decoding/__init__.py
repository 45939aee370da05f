"""Decoding of keys and values: JSON, Avro, strings and numbers. Bad records are kept apart with the reason."""
