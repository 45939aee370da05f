"""Settings: typed tables, and immutable snapshots of their values."""
