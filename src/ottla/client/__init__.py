"""The clients: an async driver of the machines in `client_core/`, and its synchronous and asyncio faces."""
