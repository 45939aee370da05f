"""Log compaction: last value per key, in bounded memory, beside a log in use (`compactor.py` is the door)."""
