"""Client settings of a command: cluster address and timeouts, from flags, a properties file, the environment, or defaults.

Files and `key=value` flags hold Kafka's client settings. Settings that apply here are used. Security settings are refused: a
connection without them would not be what the user asked for. All others are ignored with a warning that names them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import click

from ottla.cli.common.output import warn
from ottla.config.java_properties import parse_properties
from ottla.env.net import SocketOptions
from ottla.link import LinkOptions

DEFAULT_BOOTSTRAP = "localhost:9092"
DEFAULT_PORT = 9092
ENVIRONMENT_VARIABLE = "OTTLA_BOOTSTRAP_SERVERS"
PORT_MAX = 65535

Address = tuple[str, int]

# Kafka's name → attribute of ClientSettings; all of them whole numbers.
_NUMBERS = {
    "request.timeout.ms": "request_timeout_ms",
    "default.api.timeout.ms": "api_timeout_ms",
    "socket.connection.setup.timeout.ms": "connect_timeout_ms",
    "retry.backoff.ms": "retry_backoff_ms",
    "retry.backoff.max.ms": "retry_backoff_max_ms",
    "send.buffer.bytes": "send_buffer_bytes",
    "receive.buffer.bytes": "receive_buffer_bytes",
}


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """The client settings of one command. Timeouts default to those of Kafka's admin client."""

    bootstrap: tuple[Address, ...]
    client_id: str = "ottla"
    request_timeout_ms: int = 30_000
    api_timeout_ms: int = 60_000
    """Limit for one operation, retries and waits included."""
    connect_timeout_ms: int = 10_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    send_buffer_bytes: int = -1
    receive_buffer_bytes: int = -1
    properties: Mapping[str, str] = field(default_factory=dict)
    """Settings that only some verbs read, such as acks or isolation.level."""

    def link_options(self) -> LinkOptions:
        return LinkOptions(
            client_id=self.client_id,
            connect_timeout_ms=self.connect_timeout_ms,
            request_timeout_ms=self.request_timeout_ms,
            socket=SocketOptions(self.send_buffer_bytes, self.receive_buffer_bytes),
        )


def parse_bootstrap(text: str) -> tuple[Address, ...]:
    """Parse `host:port,…`. The default port is 9092; IPv6 addresses are in brackets."""
    addresses = tuple(_parse_address(part.strip()) for part in text.split(",") if part.strip())
    if not addresses:
        raise click.UsageError("the list of bootstrap servers is empty: give HOST:PORT, or several with commas between them")
    return addresses


def _parse_address(text: str) -> Address:
    plain = text.partition("://")[2] or text
    host, colon, port = plain.rpartition(":")
    if not colon or plain.endswith("]"):
        host, port = plain, str(DEFAULT_PORT)
    elif ":" in host and not host.startswith("["):
        raise click.UsageError(f"{text} is not HOST:PORT: put an IPv6 address in brackets, such as [::1]:9092")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) <= PORT_MAX:
        raise click.UsageError(f"{text} is not HOST:PORT: give a host name or address and a port from 1 to {PORT_MAX}")
    return host, int(port)


def read_properties(path: str) -> dict[str, str]:
    """Read a properties file. Raises a usage error if it cannot be read or parsed."""
    try:
        with open(path, "rb") as file:
            return parse_properties(file.read())
    except OSError as error:
        raise click.UsageError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise click.UsageError(f"{path} is not a properties file: {error}") from None


def parse_pairs(pairs: Iterable[str], flag: str) -> dict[str, str]:
    """`key=value` flags as a mapping. The last value of a key wins."""
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise click.UsageError(f"{flag} takes KEY=VALUE, not {pair!r}")
        found[key.strip()] = value
    return found


def build_settings(
    bootstrap_server: str | None, properties: Mapping[str, str], known: frozenset[str] = frozenset()
) -> ClientSettings:
    """The settings of a command. `known` names the properties that the verb itself reads."""
    _refuse_security(properties)
    bootstrap = (
        bootstrap_server or properties.get("bootstrap.servers") or os.environ.get(ENVIRONMENT_VARIABLE) or DEFAULT_BOOTSTRAP
    )
    given: dict[str, Any] = {
        attribute: whole_number(name, properties[name]) for name, attribute in _NUMBERS.items() if name in properties
    }
    if "client.id" in properties:
        given["client_id"] = properties["client.id"]
    settings = ClientSettings(parse_bootstrap(bootstrap), properties=dict(properties), **given)
    ours = {"bootstrap.servers", "client.id", "security.protocol", *_NUMBERS}
    for name in properties:
        if name not in ours and name not in known:
            warn(f"this command does not use the setting {name}: it is ignored")
    return settings


def whole_number(name: str, text: str, least: int = -1) -> int:
    """The value of a whole-number setting, at least `least`."""
    try:
        number = int(text.strip())
    except ValueError:
        number = least - 1
    if number < least:
        raise click.UsageError(f"{name} must be a whole number of at least {least}, not {text!r}")
    return number


def _refuse_security(properties: Mapping[str, str]) -> None:
    protocol = properties.get("security.protocol", "PLAINTEXT").strip().upper()
    if protocol != "PLAINTEXT":
        raise click.UsageError(
            f"security.protocol={protocol} is not supported yet: Ottla's commands talk to PLAINTEXT listeners only"
        )
    secret = next((name for name in properties if name.startswith(("sasl.", "ssl."))), None)
    if secret is not None:
        raise click.UsageError(
            f"{secret} is not supported yet: Ottla's commands talk to PLAINTEXT listeners only; leave the setting out for those"
        )
