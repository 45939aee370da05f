"""A raw client that can also behave badly: half-close, send in pieces, never read."""

import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.peers.raw_client import RawClient


class HostileClient(RawClient):
    """One connection whose socket the test may misuse."""

    @property
    def socket(self) -> socket.socket:
        return self._socket

    def half_close(self) -> None:
        """Shut down the sending side, and keep reading."""
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the node has closed it already

    def await_end(self) -> int:
        """Read until the node closes the connection; returns how many bytes came."""
        count = 0
        try:
            while piece := self._socket.recv(1 << 16):
                count += len(piece)
        except ConnectionResetError:
            pass
        return count

    def send_what_fits(self, data: bytes) -> int:
        """Send without waiting for the node to read; returns how many bytes were sent."""
        self._socket.setblocking(False)
        sent = 0
        try:
            while sent < len(data):
                sent += self._socket.send(data[sent:])
        except (BlockingIOError, ConnectionError):
            pass
        return sent


@contextmanager
def many_open_files() -> Iterator[int]:
    """Raises this process's limit on open files to its maximum, which is the value."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        yield hard
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
