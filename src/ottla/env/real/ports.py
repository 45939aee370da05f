"""Ports that are kept free for processes which this one starts.

A port that was free a moment ago may be taken before a child binds it. So this process binds each port and does not listen: a
child that sets SO_REUSEADDR can still listen on it, others cannot, and connections are refused while no child listens.
"""

from __future__ import annotations

import socket
import sys
from contextlib import ExitStack


class ReservedPorts:
    """`count` free ports of `host`, from now until `close`."""

    def __init__(self, host: str, count: int) -> None:
        self.ports: list[int] = []
        self._held = ExitStack()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            for _ in range(count):
                each = self._held.enter_context(socket.socket(family))
                each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                each.bind((host.strip("[]"), 0))
                self.ports.append(int(each.getsockname()[1]))
        except BaseException:
            self.close()
            raise
        if sys.platform != "linux":  # elsewhere SO_REUSEADDR does not share a port that is bound
            self.close()

    def close(self) -> None:
        """Let others have the ports. Closing twice is harmless."""
        self._held.close()
