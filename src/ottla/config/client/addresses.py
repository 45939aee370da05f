"""Addresses that a client connects to first: `host:port`, `host`, `[::1]:9092`, `PLAINTEXT://host:port`."""

from __future__ import annotations

DEFAULT_PORT = 9092
PORT_MAX = 65535


def parse_bootstrap_address(text: str) -> tuple[str, int]:
    """Host and port. The default port is 9092; an IPv6 address is in brackets. `ValueError` says what to write instead."""
    plain = text.partition("://")[2] or text
    host, colon, port = plain.rpartition(":")
    if not colon or plain.endswith("]"):
        host, port = plain, str(DEFAULT_PORT)
    elif ":" in host and not host.startswith("["):
        raise ValueError(f"{text} is not HOST:PORT: put an IPv6 address in brackets, such as [::1]:9092")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isascii() or not port.isdigit() or len(port) > 5 or not 0 < int(port) <= PORT_MAX:
        raise ValueError(f"{text} is not HOST:PORT: give a host name or address and a port from 1 to {PORT_MAX}")
    return host, int(port)
