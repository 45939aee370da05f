"""Segments of a log: their files, indexes, lookups by offset and by time, rolling and deletion."""
