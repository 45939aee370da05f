"""The partition log: segments, indexes, producer state, leader epochs, recovery, retention, compaction, log directories."""
