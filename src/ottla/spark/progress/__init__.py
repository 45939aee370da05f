"""Progress of streaming queries: offsets committed to a consumer group, lag, rate and batch time, and a live line."""
