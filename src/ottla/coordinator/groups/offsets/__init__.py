"""The committed offsets of one shard: commit, fetch, deletion and expiry."""
