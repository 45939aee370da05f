"""The consumer: its core on the event loop, the side of the thread that reads, and the two faces."""
