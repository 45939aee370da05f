"""Settings: typed tables and immutable snapshots of them."""
