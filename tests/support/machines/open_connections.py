"""Which connections of a client are open, for machines without a driver."""

from __future__ import annotations

from ottla.client_core.machine import Channel


class OpenConnections:
    """The open ones; a test adds to `open`."""

    def __init__(self, *keys: tuple[int, Channel]) -> None:
        self.open = set(keys)

    def is_open(self, node_id: int, channel: Channel = Channel.DATA) -> bool:
        return (node_id, channel) in self.open
