"""Log compaction: keeps the last value per key, in bounded memory, while the log is in use. Start reading at `compactor.py`."""
