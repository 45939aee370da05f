"""The pure machines of a consumer: positions, fetches, offsets and commits."""
