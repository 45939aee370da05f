"""A raw client that can also behave badly: half-close, send in pieces, never read."""

import socket

from tests.support.peers.raw_client import RawClient


class HostileClient(RawClient):
    """One connection whose socket is the test's to abuse."""

    @property
    def socket(self) -> socket.socket:
        return self._socket

    def half_close(self) -> None:
        """Say that nothing more comes, and go on reading."""
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the node was quicker

    def await_end(self) -> int:
        """Read until the node ends the connection; how many bytes came."""
        count = 0
        try:
            while piece := self._socket.recv(1 << 16):
                count += len(piece)
        except ConnectionResetError:
            pass
        return count

    def send_what_fits(self, data: bytes) -> int:
        """Send without ever waiting for the node to read; how many bytes it took."""
        self._socket.setblocking(False)
        sent = 0
        try:
            while sent < len(data):
                sent += self._socket.send(data[sent:])
        except (BlockingIOError, ConnectionError):
            pass
        return sent
