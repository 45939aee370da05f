"""The simulated world: a disk in memory that crashes and tears, a clock that jumps. For tests, never for production."""
