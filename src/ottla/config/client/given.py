"""Collects what a client was given: a bootstrap address, a mapping of Kafka's names, keywords with Python names.

All are turned into one mapping of Kafka's names → parsed values. A setting that is given twice must have the same value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ottla.config.client import classes
from ottla.config.client.kinds import ClientKind
from ottla.config.client.security import OWN_KEYWORDS
from ottla.config.keys import ConfigKey
from ottla.config.values import ConfigType, InvalidConfig, parse_duration_ms

_WHOLE_NUMBERS = (ConfigType.SHORT, ConfigType.INT, ConfigType.LONG)
_ADDRESSES = ("bootstrap.servers", "bootstrap.controllers")
_CASE_IGNORED = {"group.protocol": str.lower, "metadata.recovery.strategy": str.lower, "security.protocol": str.upper}
"""Settings that may be written in capitals or not → their one spelling here."""
_OTHER_KEYWORDS = {"partitioner": "partitioner.class", "interceptors": "interceptor.classes"}
"""Keywords that are shorter than Kafka's names."""


def collect(
    kind: ClientKind, bootstrap: object, config: Mapping[str, Any] | None, keywords: Mapping[str, Any]
) -> dict[str, Any]:
    """Setting → parsed value, of the settings that were given. None as a value means not given."""
    if isinstance(bootstrap, Mapping):  # the dict as the first argument, as other clients take it
        if config is not None:
            raise InvalidConfig("config", "settings are given as the first argument and as config: give one mapping of them")
        bootstrap, config = None, bootstrap
    if config is not None and not isinstance(config, Mapping):
        raise InvalidConfig("config", f"config must be a mapping of Kafka's names, not {type(config).__name__}")
    found: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for name, value, source in _entries(kind, bootstrap, config or {}, keywords):
        if value is None:
            continue
        parsed = value if name in OWN_KEYWORDS else parse(kind.table[name], value)
        if name in found and found[name] != parsed:
            raise InvalidConfig(
                name, f"{name} is given twice with different values, as {sources[name]} and as {source}: give it once"
            )
        found[name] = parsed
        sources[name] = source
    return found


def _entries(
    kind: ClientKind, bootstrap: object, config: Mapping[str, Any], keywords: Mapping[str, Any]
) -> Iterator[tuple[str, Any, str]]:
    """(Kafka's name, value, where it came from). Raises `InvalidConfig` for a name that this kind of client does not have."""
    yield "bootstrap.servers", bootstrap, "the first argument"
    for name, value in config.items():
        if not isinstance(name, str) or name not in kind.table:
            from ottla.config.client.names import unknown  # late: only for a mistake

            raise unknown(kind, name, is_keyword=False)
        yield name, value, f"{name} in the mapping"
    for keyword, value in keywords.items():
        name = keyword if keyword in kind.table else _OTHER_KEYWORDS.get(keyword, keyword.replace("_", "."))
        if keyword in OWN_KEYWORDS:
            name = keyword
        elif name not in kind.table:
            from ottla.config.client.names import unknown  # late: only for a mistake

            raise unknown(kind, keyword, is_keyword=True)
        yield name, value, f"the keyword {keyword}"


def parse(key: ConfigKey, value: object) -> Any:
    """The checked value of one setting, given as text or as a Python value. Raises `InvalidConfig`."""
    name = key.name
    if name == "partitioner.class":
        return classes.partitioner(name, value)
    if name.endswith((".serializer", ".deserializer")):
        return classes.serializer(name, value)
    if name == "sasl.login.callback.handler.class":
        return classes.login_handler(name, value)
    if name == "partition.assignment.strategy":
        parts = _parts(value)
        if not parts:
            raise InvalidConfig(name, f"{name} is empty: name at least one of {', '.join(classes.ASSIGNORS)}")
        assignors: list[Any] = []
        for part in parts:
            if (assignor := classes.assignor(name, part)) not in assignors:
                assignors.append(assignor)
        return tuple(assignors)
    if name == "interceptor.classes":
        return tuple(classes.interceptor(name, part) for part in _parts(value))
    if name in _ADDRESSES:
        return _addresses(name, value)
    text = _text(key, value)
    if name == "acks" and text.strip().isdecimal() and int(text) > 1:
        raise InvalidConfig(
            name,
            f"acks={text}: must be one of all, -1, 0, 1. It is no number of replicas: `all` (or -1) is probably what you mean. "
            "It waits for every in-sync replica, and the topic's min.insync.replicas says how many there must be",
        )
    parsed = key.parse(text)
    return _CASE_IGNORED[name](str(parsed)) if name in _CASE_IGNORED else _refined(name, parsed)


def _refined(name: str, parsed: Any) -> Any:
    if name == "acks":
        return -1 if parsed == "all" else int(parsed)
    return parsed


def _addresses(name: str, value: object) -> tuple[tuple[str, int], ...]:
    addresses = []
    for part in _parts(value):
        if isinstance(part, tuple) and len(part) == 2:
            part = f"{part[0]}:{part[1]}"
        if not isinstance(part, str):
            raise InvalidConfig(name, f"{name} has {part!r}: write host:port, such as localhost:9092")
        try:
            addresses.append(parse_bootstrap_address(part))
        except ValueError as error:
            raise InvalidConfig(name, f"{name}: {error}") from None
    return tuple(dict.fromkeys(addresses))


def _parts(value: object) -> list[Any]:
    """The entries of a list, given as a text with commas, as an iterable, or as one object."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    if isinstance(value, Iterable) and not isinstance(value, type):
        return [part.strip() if isinstance(part, str) else part for part in value]
    return [value]


def _text(key: ConfigKey, value: object) -> str:
    """The text that Kafka would read for a Python value."""
    if isinstance(value, str):
        if key.type in _WHOLE_NUMBERS and key.name.endswith(".ms"):
            duration_ms = parse_duration_ms(value.strip())
            return value if duration_ms is None else str(duration_ms)
        return value
    if isinstance(value, bool):
        if key.type is ConfigType.BOOLEAN:
            return str(value).lower()
    elif isinstance(value, int):
        if key.type is not ConfigType.BOOLEAN:
            return str(value)
    elif isinstance(value, float):
        if key.type is ConfigType.DOUBLE:
            return repr(value)
        if key.type in _WHOLE_NUMBERS:
            raise InvalidConfig(
                key.name, f"{key.name}={value}: must be a whole number{_unit(key.name)}, such as {round(value)}"
            )
    elif key.type is ConfigType.LIST and isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
        return ",".join(value)
    shown = "" if key.type is ConfigType.PASSWORD else f"={value!r}"
    raise InvalidConfig(key.name, f"{key.name}{shown}: must be {_expected(key.type)}, not {type(value).__name__}")


def _unit(name: str) -> str:
    return " of milliseconds" if name.endswith(".ms") else " of bytes" if name.endswith(".bytes") else ""


def _expected(type_: ConfigType) -> str:
    if type_ is ConfigType.BOOLEAN:
        return "True or False"
    if type_ in _WHOLE_NUMBERS:
        return "a whole number"
    return {ConfigType.DOUBLE: "a number", ConfigType.LIST: "a list of texts"}.get(type_, "a text")


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
