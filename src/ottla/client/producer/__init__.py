"""The producer: its core on the event loop, and its synchronous and asyncio faces."""
