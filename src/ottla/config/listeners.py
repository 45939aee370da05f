"""Parses listeners and addresses of `server.properties`: `NAME://host:port`, `id@host:port`, `host:port`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ottla.config.values import InvalidConfig

PLAINTEXT = "PLAINTEXT"
SECURITY_PROTOCOLS = {PLAINTEXT: 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
"""Security protocol → its number in records and requests."""

_PORT_MAX = 65535


class Listener(NamedTuple):
    """An address to listen on (an empty host means all addresses) or to advertise."""

    name: str
    host: str
    port: int
    security_protocol: str

    def __str__(self) -> str:
        return f"{self.name}://{_bracketed(self.host)}:{self.port}"


class Voter(NamedTuple):
    """A member of the controller quorum, as controller.quorum.voters names it."""

    id: int
    host: str
    port: int


def parse_protocol_map(setting: str, text: str) -> dict[str, str]:
    """Parse `NAME:PROTOCOL,…` to listener name → security protocol."""
    protocols: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, separator, protocol = (part.strip() for part in entry.partition(":"))
        if not separator or protocol.upper() not in SECURITY_PROTOCOLS:
            raise InvalidConfig(
                setting, f"{setting} has {entry!r}: each entry must be LISTENER:PROTOCOL, with one of "
                f"{', '.join(SECURITY_PROTOCOLS)}",
            )  # fmt: skip
        if name.upper() in protocols:
            raise InvalidConfig(setting, f"{setting} maps listener {name.upper()} twice: each may come once")
        protocols[name.upper()] = protocol.upper()
    return protocols


def parse_listeners(setting: str, entries: tuple[str, ...], protocols: Mapping[str, str]) -> tuple[Listener, ...]:
    """Parse `NAME://host:port` entries. `protocols` must have each name, and no name may appear twice."""
    listeners: list[Listener] = []
    for entry in entries:
        name, separator, address = entry.strip().partition("://")
        name = name.upper()
        if not separator or not name:
            raise InvalidConfig(setting, f"{setting} has {entry!r}: write NAME://host:port, such as PLAINTEXT://localhost:9092")
        protocol = protocols.get(name)
        if protocol is None:
            raise InvalidConfig(
                setting,
                f"{setting} has listener {name}, which listener.security.protocol.map does not map: add {name}:PLAINTEXT to it",
            )
        host, port = parse_address(setting, address, host_may_be_empty=True)
        if any(other.name == name for other in listeners):
            raise InvalidConfig(setting, f"{setting} has listener {name} twice: give each a name of its own")
        listeners.append(Listener(name, host, port, protocol))
    return tuple(listeners)


def parse_voters(setting: str, entries: tuple[str, ...]) -> tuple[Voter, ...]:
    """Parse `id@host:port` entries."""
    voters: list[Voter] = []
    for entry in entries:
        id_text, separator, address = entry.strip().partition("@")
        if not separator or not id_text.isascii() or not id_text.isdigit():
            raise InvalidConfig(setting, f"{setting} has {entry!r}: write id@host:port, such as 1@localhost:9093")
        host, port = parse_address(setting, address)
        voters.append(Voter(int(id_text), host, port))
    return tuple(voters)


def parse_address(setting: str, text: str, *, host_may_be_empty: bool = False) -> tuple[str, int]:
    """Parse `host:port`, with an IPv6 host in brackets."""
    host, _, port_text = text.strip().rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise InvalidConfig(setting, f"{setting} has {text!r}: an IPv6 address goes into brackets, as in [::1]:9092")
    if not port_text.isascii() or not port_text.isdigit() or int(port_text) > _PORT_MAX or not (host or host_may_be_empty):
        raise InvalidConfig(setting, f"{setting} has {text!r}: write host:port, with a port from 0 to {_PORT_MAX}")
    return host, int(port_text)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
